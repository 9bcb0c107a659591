package report

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/onsi/ginkgo/v2/reporters"

	"github.com/weft-proxy/weft/deploy/e2e/conformance/specs"
)

// JUnit writes the results of all runs below root into one file. Each run is two test suites: the
// specs, and the ClusterNetworkPolicy suite.
func JUnit(root, file string) error {
	var merged reporters.JUnitTestSuites
	for _, subject := range Subjects {
		dirs, err := filepath.Glob(filepath.Join(root, subject.Name, "*"))
		if err != nil {
			return fmt.Errorf("merge JUnit: %w", err)
		}
		for _, dir := range dirs {
			name := subject.Name + ", run " + filepath.Base(dir)
			if err := suites(&merged, dir, name); err != nil {
				return fmt.Errorf("merge JUnit: %w", err)
			}
		}
	}
	text, err := xml.MarshalIndent(merged, "", "  ")
	if err != nil {
		return fmt.Errorf("merge JUnit: %w", err)
	}
	if err := os.WriteFile(file, append([]byte(xml.Header), append(text, '\n')...), 0o644); err != nil {
		return fmt.Errorf("merge JUnit: %w", err)
	}
	return nil
}

func suites(merged *reporters.JUnitTestSuites, dir, name string) error {
	text, err := os.ReadFile(specs.JUnit(dir))
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	default:
		var part reporters.JUnitTestSuites
		if err := xml.Unmarshal(text, &part); err != nil {
			return fmt.Errorf("%s: %w", specs.JUnit(dir), err)
		}
		for _, s := range part.TestSuites {
			s.Name += ", " + name
			appendSuite(merged, s)
		}
	}
	output, err := os.ReadFile(PolicyOutput(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	s := reporters.JUnitTestSuite{Name: policies + ", " + name}
	for _, p := range parseTests(string(output)) {
		c := reporters.JUnitTestCase{Name: p.Name, Classname: policies, Status: string(p.State), Time: p.Seconds}
		switch p.State {
		case Failed:
			s.Failures++
			c.Failure = &reporters.JUnitFailure{Message: p.Message, Type: "failed"}
		case Skipped:
			s.Skipped++
			c.Skipped = &reporters.JUnitSkipped{Message: p.Message}
		}
		s.Tests, s.Time = s.Tests+1, s.Time+p.Seconds
		s.TestCases = append(s.TestCases, c)
	}
	appendSuite(merged, s)
	return nil
}

func appendSuite(merged *reporters.JUnitTestSuites, s reporters.JUnitTestSuite) {
	merged.Tests += s.Tests
	merged.Disabled += s.Disabled + s.Skipped
	merged.Errors += s.Errors
	merged.Failures += s.Failures
	merged.Time += s.Time
	merged.TestSuites = append(merged.TestSuites, s)
}
