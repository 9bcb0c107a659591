package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"

	"github.com/weft-proxy/weft/deploy/e2e/conformance/specs"
)

// All processes of a run write to the same file.
func record(file string) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("open results: %w", err)
	}
	ginkgo.ReportAfterEach(func(report types.SpecReport) {
		excluded := report.State == types.SpecStateSkipped && report.Failure.Message == ""
		if excluded || report.State == types.SpecStatePending {
			return
		}
		line, err := json.Marshal(specs.Line{
			Name: report.FullText(), State: report.State.String(), Seconds: report.RunTime.Seconds(),
			Process: report.ParallelProcess, Message: report.Failure.Message,
		})
		if err == nil {
			_, err = f.Write(append(line, '\n'))
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "specs: write results: %v\n", err)
		}
	})
	return nil
}
