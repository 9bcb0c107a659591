package doctor

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/weft-proxy/weft/cmd/weft/cli"
)

// Severity is how bad a finding is.
type Severity string

// Severities.
const (
	// Error means that packets or publishers suffer now.
	Error Severity = "error"
	// Warning means that they may suffer later, or in a case that not every cluster has.
	Warning Severity = "warning"
	// Unknown means that something could not be examined.
	Unknown Severity = "unknown"
)

// Finding is something that is wrong. The texts are sentences without a full stop.
type Finding struct {
	// Check is the name of the check that found it.
	Check    string   `json:"check"`
	Severity Severity `json:"severity"`
	// Found is what was found, with names and numbers.
	Found string `json:"found"`
	// Meaning is what it does to packets or publishers.
	Meaning string `json:"meaning"`
	// Remedy is what to do.
	Remedy string `json:"remedy"`
}

// findings are the findings of a check.
type findings []Finding

// add adds a finding.
func (r *findings) add(severity Severity, found, meaning, remedy string) {
	*r = append(*r, Finding{Severity: severity, Found: found, Meaning: meaning, Remedy: remedy})
}

// addSome adds an error about things that are named; found is a format of their number and names.
func (r *findings) addSome(names []string, found, meaning, remedy string) {
	if len(names) > 0 {
		r.add(Error, fmt.Sprintf(found, len(names), cli.Some(names)), meaning, remedy)
	}
}

// order has the worst first.
var order = []Severity{Error, Warning, Unknown}

// sortFindings sorts by severity, and keeps the order of the checks.
func sortFindings(all []Finding) {
	slices.SortStableFunc(all, func(a, b Finding) int {
		return cmp.Compare(slices.Index(order, a.Severity), slices.Index(order, b.Severity))
	})
}

// printReport prints a line for each process of weft, a paragraph for each finding, and a last
// line with their number.
func printReport(w io.Writer, r *Report) error {
	var b strings.Builder
	for _, p := range r.Conditions {
		fmt.Fprintln(&b, p)
	}
	count := make(map[Severity]int)
	for _, f := range r.Findings {
		count[f.Severity]++
		fmt.Fprintf(&b, "%s: %s: %s\n    %s.\n    %s.\n", f.Severity, f.Check, f.Found, f.Meaning, f.Remedy)
	}
	if len(r.Findings) == 0 {
		fmt.Fprintf(&b, "%d checks: nothing found\n", len(r.Checks))
	} else {
		fmt.Fprintf(&b, "%d checks: %d errors, %d warnings, %d not examined\n", len(r.Checks), count[Error], count[Warning], count[Unknown])
	}
	_, err := io.WriteString(w, b.String())
	return err
}
