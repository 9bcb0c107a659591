package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/cmd/weft/conditions"
	"github.com/weft-proxy/weft/cmd/weft/get"
)

const rulesStay = "The rules of the last commit stay in the kernel, but no Service, policy or publisher can change them"

// checkSocket connects to the aggregator.
func checkSocket(_ context.Context, n *node) ([]Finding, error) {
	_, err := n.dial()
	if err == nil {
		return nil, nil
	}
	path := n.Socket
	f := Finding{Severity: Error, Meaning: rulesStay}
	_, statErr := os.Stat(path)
	switch {
	case errors.Is(err, client.ErrPermission), errors.Is(err, os.ErrPermission):
		f.Found, f.Meaning = fmt.Sprintf("weft's socket %s refuses this user: %v", path, err), "What weft says of itself was not examined"
		f.Remedy = "Run weft doctor as root, or as a user that the configuration knows"
	case errors.Is(statErr, fs.ErrNotExist):
		f.Found = fmt.Sprintf("socket %s does not exist: weft does not run here, or with another --socket", path)
		f.Remedy = "Start weft (`kubectl -n kube-system rollout status daemonset/weft`, `systemctl status weft`), or name its socket with --socket"
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, client.ErrUnavailable):
		f.Found = fmt.Sprintf("nothing answers on the socket %s: weft has ended or stands by", path)
		f.Remedy = "Look at the end of weft's log (`kubectl -n kube-system logs --previous`, `journalctl -u weft`), and start it"
	default:
		f.Found, f.Remedy = fmt.Sprintf("the socket %s: %v", path, err), "Look at weft's log, and restart weft"
	}
	return []Finding{f}, nil
}

// checkHealth looks whether weft's server for health checks answers load balancers. What it
// answers is kube-proxy's: a node that leaves is to get no new connections.
func checkHealth(ctx context.Context, n *node) ([]Finding, error) {
	if !n.running() {
		return nil, nil
	}
	_, _, err := httpGet(ctx, n.Health, "/healthz")
	switch {
	case errors.Is(err, context.DeadlineExceeded) || os.IsTimeout(err):
		if lost := n.lost("weft's server for health checks " + n.Health); lost != nil {
			return lost, nil
		}
		return []Finding{{
			Severity: Error, Found: fmt.Sprintf("weft's server for health checks has %s and does not answer: weft hangs, or the machine is overloaded", n.Health),
			Meaning: rulesStay, Remedy: "Restart weft: its rules stay meanwhile. `kill -ABRT` writes what it was doing to its log, for a bug report",
		}}, nil
	case err != nil:
		return []Finding{{
			Severity: Warning, Found: fmt.Sprintf("weft's server for health checks does not answer on %s: %v", n.Health, err),
			Meaning: "Load balancers and the kubelet take this node for dead", Remedy: "Look for another program on the port (`ss -ltnp`), or name the address with --healthz-address",
		}}, nil
	}
	return nil, nil
}

// checkConditions reads what weft's processes say of themselves.
func checkConditions(ctx context.Context, n *node) ([]Finding, error) {
	all, err := get.ReadStatus(ctx, &cli.Connection{Socket: n.Socket, Publisher: n.Publisher})
	if errors.Is(err, client.ErrUnavailable) || errors.Is(err, client.ErrPermission) {
		return nil, nil // checkSocket reports it
	}
	if err != nil {
		return nil, err
	}
	n.processes.Store(&all)
	var out []Finding
	for _, p := range all {
		for _, c := range p.Wrong() {
			// A later weft may have conditions that this version does not know.
			meaning := conditions.KindOf(c.Name).Meaning
			out = append(out, Finding{Severity: Error, Found: fmt.Sprintf("weft %s: %s is %s: %s", p.Process, c.Name, c.State, c.Message), Meaning: meaning, Remedy: c.Remedy})
		}
	}
	return out, nil
}

// checkPublishers looks for limits that are nearly reached.
func checkPublishers(ctx context.Context, n *node) ([]Finding, error) {
	c, err := n.dial()
	if err != nil {
		return nil, nil //nolint:nilerr // checkSocket reports it
	}
	answer, err := c.ListPublishers(ctx)
	var out []Finding
	for _, p := range answer.GetPublishers() {
		for _, l := range p.GetLimits() {
			if l.GetLimit() > 0 && l.GetUsed()*10 >= l.GetLimit()*9 {
				out = append(out, Finding{
					Severity: Warning, Found: fmt.Sprintf("publisher %s holds %d of at most %d %s", p.GetName(), l.GetUsed(), l.GetLimit(), l.GetName()),
					Meaning: "Above the limit its updates are rejected, and its last ones stay in force", Remedy: fmt.Sprintf("Raise the limit %q in the configuration, or have the publisher hold less", l.GetName()),
				})
			}
		}
	}
	return out, err
}

// checkFragments looks for hidden elements.
func checkFragments(ctx context.Context, n *node) ([]Finding, error) {
	c, err := n.dial()
	if err != nil {
		return nil, nil //nolint:nilerr // checkSocket reports it
	}
	answer, err := c.List(ctx)
	var out []Finding
	for _, f := range answer.GetFragments() {
		if f.GetShadowed() > 0 {
			out = append(out, Finding{
				Severity: Warning, Found: fmt.Sprintf("%d elements of fragment %s are hidden by those of another fragment", f.GetShadowed(), f.GetFragment().Text()),
				Meaning: "Two publishers give one key different values, and the one with the lower priority number wins", Remedy: "`weft plan` and `weft get element` name both; remove one of them",
			})
		}
	}
	return out, err
}
