package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/onsi/ginkgo/v2/types"

	"github.com/weft-proxy/weft/deploy/e2e/conformance/specs"
)

// State is how a spec ended.
type State string

const (
	Passed  State = "passed"
	Failed  State = "failed"
	Skipped State = "skipped"
)

// Spec is the result of a spec in one run.
type Spec struct {
	// See Short.
	Name    string
	State   State
	Seconds float64
	// the first line of the failure, or the reason of a skip
	Message string
}

// Run has the results of a run of a subject.
type Run struct {
	Subject string
	// Policies has the tests of the ClusterNetworkPolicy suite.
	Specs, Policies []Spec
	// Selected counts sig-network specs without skip.txt and, in a run without a policy engine, without
	// policy specs.
	Selected int
	Elapsed  time.Duration
}

func (r Run) complete() bool { return r.Selected > 0 && len(r.Specs) >= r.Selected }

const policyOutput = "clusterpolicy.txt"

// Dir returns the directory for the results of a subject's run; run counts from 1.
func Dir(root, subject string, run int) string {
	return filepath.Join(root, subject, strconv.Itoa(run))
}

// PolicyOutput returns the file for the output of the ClusterNetworkPolicy suite.
func PolicyOutput(dir string) string { return filepath.Join(dir, policyOutput) }

// Load reads the results of all subjects and runs below root.
func Load(root string) ([]Run, error) {
	var runs []Run
	for _, subject := range Subjects {
		dirs, err := filepath.Glob(filepath.Join(root, subject.Name, "*"))
		if err != nil {
			return nil, fmt.Errorf("load results: %w", err)
		}
		slices.Sort(dirs)
		for _, dir := range dirs {
			run, err := read(dir)
			if err != nil {
				return nil, err
			}
			run.Subject = subject.Name
			runs = append(runs, run)
		}
	}
	if len(runs) == 0 {
		return nil, fmt.Errorf("load results: no run in %s", root)
	}
	return runs, nil
}

func read(dir string) (Run, error) {
	var run Run
	text, err := os.ReadFile(specs.Results(dir))
	if err == nil {
		run, err = parseGinkgo(text)
	}
	none := errors.Is(err, fs.ErrNotExist)
	if err != nil && !none {
		return Run{}, fmt.Errorf("read results of specs in %s: %w", dir, err)
	}
	policies, err := os.ReadFile(PolicyOutput(dir))
	if err != nil && (none || !errors.Is(err, fs.ErrNotExist)) {
		return Run{}, fmt.Errorf("read results: %w", err)
	}
	run.Policies = parseTests(string(policies))
	return run, nil
}

// ginkgo's report also has specs that were not selected.
func parseGinkgo(text []byte) (Run, error) {
	var reports []types.Report
	if err := json.Unmarshal(text, &reports); err != nil {
		return Run{}, err
	}
	skips, err := specs.Skips()
	if err != nil {
		return Run{}, err
	}
	var run Run
	policies, ran := 0, false
	for _, report := range reports {
		run.Elapsed += report.RunTime
		for _, s := range report.SpecReports {
			name := s.FullText()
			if s.LeafNodeType != types.NodeTypeIt || !specs.OfNetwork(name) {
				continue
			}
			policy := specs.NeedsPolicy(name)
			if _, skipped := specs.Reason(skips, name); !skipped {
				run.Selected++
				if policy {
					policies++
				}
			}
			state := Failed
			switch s.State {
			case types.SpecStatePassed:
				state = Passed
			case types.SpecStateSkipped:
				if s.Failure.Message == "" {
					continue
				}
				state = Skipped
			case types.SpecStatePending, types.SpecStateInvalid:
				continue
			}
			ran = ran || policy
			run.Specs = append(run.Specs, Spec{
				Name: Short(name), State: state, Seconds: s.RunTime.Seconds(), Message: firstLine(s.Failure.Message),
			})
		}
	}
	if !ran {
		run.Selected -= policies
	}
	return run, nil
}
