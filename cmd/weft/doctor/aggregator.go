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

func checkSocket(_ context.Context, n *node, r *findings) error {
	_, err := n.dial()
	if err == nil {
		return nil
	}
	path := n.Socket
	_, statErr := os.Stat(path)
	switch {
	case errors.Is(err, client.ErrPermission), errors.Is(err, os.ErrPermission):
		r.add(Error, fmt.Sprintf("weft's socket %s refuses this user: %v", path, err), "What weft says of itself was not examined",
			"Run weft doctor as root, or as a user that the configuration knows")
	case errors.Is(statErr, fs.ErrNotExist):
		r.add(Error, fmt.Sprintf("socket %s does not exist: weft does not run here, or with another --socket", path), rulesStay,
			"Start weft (`kubectl -n kube-system rollout status daemonset/weft`, `systemctl status weft`), or name its socket with --socket")
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, client.ErrUnavailable):
		r.add(Error, fmt.Sprintf("nothing answers on the socket %s: weft has ended or stands by", path), rulesStay,
			"Look at the end of weft's log (`kubectl -n kube-system logs --previous`, `journalctl -u weft`), and start it")
	default:
		r.add(Error, fmt.Sprintf("the socket %s: %v", path, err), rulesStay, "Look at weft's log, and restart weft")
	}
	return nil
}

// checkHealth ignores the status code: as with kube-proxy, it only says whether the node leaves.
func checkHealth(ctx context.Context, n *node, r *findings) error {
	if !n.running() {
		return nil
	}
	_, _, err := httpGet(ctx, n.Health, "/healthz")
	switch {
	case err == nil:
	case errors.Is(err, context.DeadlineExceeded) || os.IsTimeout(err):
		if r.lost(n, "weft's server for health checks "+n.Health) {
			return nil
		}
		r.add(Error, fmt.Sprintf("weft's server for health checks has %s and does not answer: weft hangs, or the machine is overloaded", n.Health),
			rulesStay, "Restart weft: its rules stay meanwhile. `kill -ABRT` writes what it was doing to its log, for a bug report")
	default:
		r.add(Warning, fmt.Sprintf("weft's server for health checks does not answer on %s: %v", n.Health, err),
			"Load balancers and the kubelet take this node for dead", "Look for another program on the port (`ss -ltnp`), or name the address with --healthz-address")
	}
	return nil
}

func checkConditions(ctx context.Context, n *node, r *findings) error {
	all, err := get.ReadStatus(ctx, &cli.Connection{Socket: n.Socket, Publisher: n.Publisher})
	if errors.Is(err, client.ErrUnavailable) || errors.Is(err, client.ErrPermission) {
		return nil // checkSocket reports it
	}
	if err != nil {
		return err
	}
	n.processes.Store(&all)
	for _, p := range all {
		for _, c := range p.Wrong() {
			// A later weft may have unknown conditions.
			meaning := conditions.KindOf(c.Name).Meaning
			r.add(Error, fmt.Sprintf("weft %s: %s is %s: %s", p.Process, c.Name, c.State, c.Message), meaning, c.Remedy)
		}
	}
	return nil
}

func checkPublishers(ctx context.Context, n *node, r *findings) error {
	c, err := n.dial()
	if err != nil {
		return nil //nolint:nilerr // checkSocket reports it
	}
	answer, err := c.ListPublishers(ctx)
	for _, p := range answer.GetPublishers() {
		for _, l := range p.GetLimits() {
			if l.GetLimit() > 0 && l.GetUsed()*10 >= l.GetLimit()*9 {
				r.add(Warning, fmt.Sprintf("publisher %s holds %d of at most %d %s", p.GetName(), l.GetUsed(), l.GetLimit(), l.GetName()),
					"Above the limit its updates are rejected, and its last ones stay in force", fmt.Sprintf("Raise the limit %q in the configuration, or have the publisher hold less", l.GetName()))
			}
		}
	}
	return err
}

func checkFragments(ctx context.Context, n *node, r *findings) error {
	c, err := n.dial()
	if err != nil {
		return nil //nolint:nilerr // checkSocket reports it
	}
	answer, err := c.List(ctx)
	for _, f := range answer.GetFragments() {
		if f.GetShadowed() > 0 {
			r.add(Warning, fmt.Sprintf("%d elements of fragment %s are hidden by those of another fragment", f.GetShadowed(), f.GetFragment().Text()),
				"Two publishers give one key different values, and the one with the lower priority number wins", "`weft plan` and `weft get element` name both; remove one of them")
		}
	}
	return err
}
