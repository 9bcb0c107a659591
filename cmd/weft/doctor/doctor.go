package doctor

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/weft-proxy/weft/cmd/weft/conditions"
)

const (
	// limit is how long all checks together may take.
	limit = 2 * time.Second
	// grace is how much earlier a check is told to end, so that it can say what it waited for.
	grace = 200 * time.Millisecond
)

var errLate = fmt.Errorf("the check did not end within %v", limit)

// Config says what to examine.
type Config struct {
	// Socket is the path of weft's socket.
	Socket string
	// Publisher is the publisher to act as; empty means the one of the user ID.
	Publisher string
	// Health is the address of /healthz, /livez and /readyz, and Metrics that of /metrics.
	Health, Metrics string
	// StateDir is the state directory of the aggregator.
	StateDir string
	// Root is the root of the file system whose /proc and /sys are read; empty means "/".
	Root string
	// Now is the present; nil means time.Now.
	Now func() time.Time
}

// Report is the result of an examination.
type Report struct {
	// Conditions are those of weft's processes, none if no weft answers.
	Conditions []*conditions.Process `json:"conditions"`
	// Checks are the names of the checks that ran.
	Checks []string `json:"checks"`
	// Findings are sorted: errors first.
	Findings []Finding `json:"findings"`
}

// Failed reports whether there is an error among the findings.
func (r *Report) Failed() bool { return len(r.Findings) > 0 && r.Findings[0].Severity == Error }

// check examines one thing. An error means that it could not be examined.
type check struct {
	name string
	run  func(ctx context.Context, n *node, r *findings) error
}

// checks are all checks, in the order of a report.
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

// Run examines the node. All checks run at the same time. What has not ended after two seconds
// is reported as not examined.
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

// runChecks runs checks until late is closed, and closes the node after the last one, which can be
// later: a dump of the kernel and a read of a file cannot be interrupted.
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

// examine runs a check.
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
