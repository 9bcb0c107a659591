package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

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

// checkHealth asks weft's server for health checks, as load balancers do.
func checkHealth(ctx context.Context, n *node) ([]Finding, error) {
	if !n.running() {
		return nil, nil
	}
	code, body, err := httpGet(ctx, n.Health, "/healthz")
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
	case code != http.StatusOK:
		line, _, _ := strings.Cut(body, "\n")
		return []Finding{{
			Severity: Error, Found: fmt.Sprintf("/healthz is %d: %s", code, line), Meaning: "Load balancers do not send traffic to this node",
			Remedy: "Remove the cause that the conditions name. If they are ok, the Node is missing, leaves, or is drained by the autoscaler",
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
			kind, _ := conditions.KindOf(c.Name)
			out = append(out, Finding{
				Severity: Error, Found: fmt.Sprintf("weft %s: %s is %s: %s", p.Process, c.Name, c.State, c.Message), Meaning: kind.Meaning, Remedy: c.Remedy,
			})
		}
	}
	return out, nil
}

// checkPublishers looks for limits that are nearly reached.
func checkPublishers(_ context.Context, n *node) ([]Finding, error) {
	if !n.running() {
		return nil, nil
	}
	publishers, err := n.publishers()
	if err != nil {
		return nil, err
	}
	var out []Finding
	for _, p := range publishers {
		for _, l := range p.GetLimits() {
			if l.GetLimit() > 0 && l.GetUsed()*10 >= l.GetLimit()*9 {
				out = append(out, Finding{
					Severity: Warning, Found: fmt.Sprintf("publisher %s holds %d of at most %d %s", p.GetName(), l.GetUsed(), l.GetLimit(), l.GetName()),
					Meaning: "Above the limit its updates are rejected, and its last ones stay in force", Remedy: fmt.Sprintf("Raise the limit %q in the configuration, or have the publisher hold less", l.GetName()),
				})
			}
		}
	}
	return out, nil
}

// checkFragments looks for hidden elements, and for times that a clock made that was wrong.
func checkFragments(_ context.Context, n *node) ([]Finding, error) {
	if !n.running() {
		return nil, nil
	}
	fragments, err := n.fragments()
	if err != nil {
		return nil, err
	}
	var out []Finding
	for _, f := range fragments {
		name := f.GetFragment().Text()
		if f.GetShadowed() > 0 {
			out = append(out, Finding{
				Severity: Warning, Found: fmt.Sprintf("%d elements of fragment %s are hidden by those of another fragment", f.GetShadowed(), name),
				Meaning: "Two publishers give one key different values, and the one with the lower priority number wins", Remedy: "`weft plan` and `weft get element` name both; remove one of them",
			})
		}
		if changed := f.GetChanged().AsTime(); f.GetChanged() != nil && changed.After(n.Now().Add(time.Minute)) {
			out = append(out, Finding{
				Severity: Warning, Found: fmt.Sprintf("fragment %s was changed at %s, which is in the future", name, changed.UTC().Format(time.RFC3339)),
				Meaning: "The clock was set back: fragments that expire stay longer than they should", Remedy: "Correct the clock (`timedatectl`, `chronyc tracking`)",
			})
		}
	}
	return out, nil
}
