package doctor

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/cmd/weft/conditions"
)

const (
	// limit bounds the time of all checks together.
	limit = 2 * time.Second
	// grace is the time for checks to report after their context has ended.
	grace = 200 * time.Millisecond
)

var errLate = fmt.Errorf("the check did not end within %v", limit)

// Config says what to examine.
type Config struct {
	// Socket is the path of weft's socket.
	Socket string
	// Publisher is the publisher to act as; empty means the publisher of the user ID.
	Publisher string
	// Health is the address of /healthz, /livez and /readyz, Metrics of /metrics.
	Health, Metrics string
	// StateDir is the state directory of the aggregator.
	StateDir string
	// Root is the parent of proc and sys; empty means "/".
	Root string
	// Now returns the current time; nil means time.Now.
	Now func() time.Time
}

// Report is the result of an examination.
type Report struct {
	// Conditions are the conditions of weft's processes, empty if weft does not answer.
	Conditions []*conditions.Process `json:"conditions"`
	// Checks are the names of the checks that ran.
	Checks []string `json:"checks"`
	// Findings are sorted: errors first.
	Findings []Finding `json:"findings"`
}

// Failed reports whether the findings include an error.
func (r *Report) Failed() bool { return len(r.Findings) > 0 && r.Findings[0].Severity == Error }

// check examines one subject. An error means that this was not possible.
type check struct {
	name string
	run  func(ctx context.Context, n *node, r *findings) error
}

// checks are in the order of a report.
var checks = []check{
	{"conditions", checkConditions},
	{"socket", checkSocket},
	{"health", checkHealth},
	{"publishers", checkPublishers},
	{"fragments", checkFragments},
	{"tables", checkTables},
	{"kube-proxy", checkKubeProxy},
	{"foreign-rules", checkForeign},
	{"forwarding", checkForwarding},
	{"routes", checkRoutes},
	{"rp-filter", checkReversePath},
	{"bridges", checkBridges},
	{"ports", checkPorts},
	{"conntrack", checkConntrack},
	{"neighbours", checkNeighbours},
	{"modules", checkModules},
	{"state-directory", checkStateDir},
	{"clock", checkClock},
	{"endpoints", checkEndpoints},
	{"services", checkDisagree},
}

// Run examines the node with all checks at the same time. Checks that take more than two seconds are
// reported as not examined.
func Run(ctx context.Context, cfg Config) *Report {
	late, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ctx, end := context.WithTimeout(late, limit-grace)
	defer end()
	n := newNode(ctx, cfg)
	r := runChecks(ctx, late.Done(), n, checks)
	if all := n.processes.Load(); all != nil {
		r.Conditions = *all
	}
	sortFindings(r.Findings)
	return r
}

// runChecks runs checks until late is closed. It closes the node after the last check, possibly later,
// because dumps of the kernel and reads of files cannot be interrupted.
func runChecks(ctx context.Context, late <-chan struct{}, n *node, checks []check) *Report {
	found := make([]chan []Finding, len(checks))
	var all sync.WaitGroup
	for i, c := range checks {
		found[i] = make(chan []Finding, 1)
		all.Go(func() { found[i] <- c.examine(ctx, n) })
	}
	go func() {
		all.Wait()
		n.close()
	}()
	r := &Report{Conditions: []*conditions.Process{}, Checks: make([]string, len(checks)), Findings: []Finding{}}
	for i, c := range checks {
		r.Checks[i] = c.name
		select {
		case f := <-found[i]:
			r.Findings = append(r.Findings, f...)
		case <-late:
			select {
			case f := <-found[i]:
				r.Findings = append(r.Findings, f...)
			default:
				r.Findings = append(r.Findings, c.unknown(errLate))
			}
		}
	}
	return r
}

func (c *check) examine(ctx context.Context, n *node) (found findings) {
	err := c.run(ctx, n, &found)
	for i := range found {
		found[i].Check = c.name
	}
	if err != nil {
		found = append(found, c.unknown(err))
	}
	return found
}

// unknown returns the finding that the check could not be made.
func (c *check) unknown(err error) Finding {
	return Finding{
		Check: c.name, Severity: Unknown, Found: err.Error(),
		Meaning: "This was not examined", Remedy: "Run weft doctor as root in the network namespace of the node, with the flags that weft runs with",
	}
}

// Severity is how bad a finding is.
type Severity string

// Severities.
const (
	// Error means that packets or publishers suffer now.
	Error Severity = "error"
	// Warning means that they may suffer later, or in some clusters only.
	Warning Severity = "warning"
	// Unknown means that a check could not be made.
	Unknown Severity = "unknown"
)

// Finding is a problem. The texts are sentences without a full stop.
type Finding struct {
	// Check is the name of the check.
	Check    string   `json:"check"`
	Severity Severity `json:"severity"`
	// Found is the problem, with names and numbers.
	Found string `json:"found"`
	// Meaning is the effect on packets or publishers.
	Meaning string `json:"meaning"`
	Remedy  string `json:"remedy"`
}

type findings []Finding

func (r *findings) add(severity Severity, found, meaning, remedy string) {
	*r = append(*r, Finding{Severity: severity, Found: found, Meaning: meaning, Remedy: remedy})
}

// addSome adds an error about named objects; found is a format of their number and names.
func (r *findings) addSome(names []string, found, meaning, remedy string) {
	if len(names) > 0 {
		r.add(Error, fmt.Sprintf(found, len(names), cli.Some(names)), meaning, remedy)
	}
}

var order = []Severity{Error, Warning, Unknown}

// sortFindings sorts by severity, and keeps the order of the checks.
func sortFindings(all []Finding) {
	slices.SortStableFunc(all, func(a, b Finding) int {
		return cmp.Compare(slices.Index(order, a.Severity), slices.Index(order, b.Severity))
	})
}

// printReport prints a line for each process of weft, a paragraph for each finding, and a summary.
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
