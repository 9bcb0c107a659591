package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/cmd/weft/conditions"
)

const (
	// limit is for all checks together.
	limit = 2 * time.Second
	// grace is for reports after the end of the checks' context.
	grace = 200 * time.Millisecond
)

var errLate = fmt.Errorf("the check did not end within %v", limit)

// Config selects the node to examine.
type Config struct {
	Socket string
	// default: "uid-N"
	Publisher string
	// the addresses of /healthz, /livez and /readyz, and of /metrics
	Health, Metrics string
	StateDir        string
	// the parent of proc and sys; default: "/"
	Root string
	// default: time.Now
	Now func() time.Time
}

// Report is the result of an examination.
type Report struct {
	// empty without an answer
	Conditions []*conditions.Process `json:"conditions"`
	Checks     []string              `json:"checks"`
	// errors first
	Findings []Finding `json:"findings"`
}

// Failed reports whether the findings include an error.
func (r *Report) Failed() bool { return len(r.Findings) > 0 && r.Findings[0].Severity == Error }

type check struct {
	name string
	// run returns an error if the subject cannot be examined.
	run func(ctx context.Context, n *node, r *findings) error
}

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

// Run runs all checks at the same time, for two seconds.
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

// runChecks returns when late is closed at the latest, and closes n after the last check: dumps of
// the kernel and reads of files cannot be interrupted.
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

func (c *check) unknown(err error) Finding {
	remedy := "Run weft doctor as root in the network namespace of the node, with the flags that weft runs with"
	if errors.Is(err, client.ErrUnavailable) {
		remedy = "Start weft, and run weft doctor again"
	}
	return Finding{Check: c.name, Severity: Unknown, Found: err.Error(), Meaning: "This was not examined", Remedy: remedy}
}

// Severity is how bad a finding is.
type Severity string

// Severities.
const (
	// Error harms packets or publishers now.
	Error Severity = "error"
	// Warning may harm later, or in some clusters.
	Warning Severity = "warning"
	// Unknown is a failed check.
	Unknown Severity = "unknown"
)

// Finding is a problem of the node. Its texts are sentences without a full stop.
type Finding struct {
	Check    string   `json:"check"`
	Severity Severity `json:"severity"`
	// the finding, with names and numbers
	Found string `json:"found"`
	// the effect on packets or publishers
	Meaning string `json:"meaning"`
	Remedy  string `json:"remedy"`
}

type findings []Finding

func (r *findings) add(severity Severity, found, meaning, remedy string) {
	*r = append(*r, Finding{Severity: severity, Found: found, Meaning: meaning, Remedy: remedy})
}

// addSome adds an error unless names is empty. found is a format of their number and the names.
func (r *findings) addSome(names []string, found, meaning, remedy string) {
	if len(names) > 0 {
		r.add(Error, fmt.Sprintf(found, len(names), cli.Some(names)), meaning, remedy)
	}
}

var order = []Severity{Error, Warning, Unknown}

func sortFindings(all []Finding) {
	slices.SortStableFunc(all, func(a, b Finding) int {
		return cmp.Compare(slices.Index(order, a.Severity), slices.Index(order, b.Severity))
	})
}

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
