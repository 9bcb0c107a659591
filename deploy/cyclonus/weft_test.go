package cyclonus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
	"github.com/weft-proxy/weft/frontends/testing/policytest"
)

type daemon struct {
	node     *lab.Node
	commands [][]string
	running  []*lab.Process
}

// newDaemon starts `weft run --network-policy`, or the aggregator and `weft policy` apart.
func newDaemon(t *testing.T, node *lab.Node, apart bool) *daemon {
	t.Helper()
	dir := filepath.Join(runDir, node.Name())
	must(t, os.MkdirAll(filepath.Join(dir, "state"), 0o750))
	weft := tests.Path("weft")
	socket := []string{"--socket", filepath.Join(dir, "weft.sock")}
	quiet := []string{"--metrics-bind-address", "", "--healthz-bind-address", ""}
	follow := []string{"--hostname-override", node.Name(), "--kubeconfig", kubeconfig}
	state := []string{"--state-dir", filepath.Join(dir, "state")}
	var cidrs []string
	for _, p := range lab.ClusterCIDRs() {
		cidrs = append(cidrs, p.String())
	}
	d := &daemon{node: node}
	if apart {
		d.commands = [][]string{
			slices.Concat([]string{weft, "aggregator", "--metrics-bind-address", ""}, socket, state),
			slices.Concat([]string{weft, "policy"}, socket, follow, quiet),
		}
	} else {
		run := []string{weft, "run", "--network-policy", "--cluster-cidr", strings.Join(cidrs, ",")}
		d.commands = [][]string{slices.Concat(run, socket, state, follow, quiet)}
	}
	must(t, d.start())
	t.Cleanup(func() { must(t, d.stop(false)) })
	return d
}

func (d *daemon) start() error {
	d.running = nil
	for i, argv := range d.commands {
		name := fmt.Sprintf("%s-%d", d.node.Name(), i)
		p, err := d.node.Start(name, filepath.Join(logDir, name+".log"), nil, argv...)
		if err != nil {
			return err
		}
		d.running = append(d.running, p)
	}
	return nil
}

// stop sends SIGKILL or SIGTERM.
func (d *daemon) stop(kill bool) error {
	var errs []error
	for _, p := range d.running {
		if kill {
			errs = append(errs, p.Kill())
		} else {
			errs = append(errs, p.Stop(10*time.Second))
		}
	}
	return errors.Join(errs...)
}

// err reports an ended process, with the end of its log.
func (d *daemon) err() error {
	var errs []error
	for _, p := range d.running {
		if err := p.Err(); err != nil {
			errs = append(errs, fmt.Errorf("%s on %s: %w\n%s", p.Name, d.node.Name(), err, p.Tail(20)))
		}
	}
	return errors.Join(errs...)
}

type world struct {
	*network
	api     *apiServer
	daemons []*daemon
}

func newWorld(t *testing.T) *world {
	t.Helper()
	n := newNetwork(t)
	must(t, os.MkdirAll(logDir, 0o755))
	w := &world{network: n, api: newAPIServer(t, n.lab)}
	for i, node := range n.lab.Nodes {
		w.daemons = append(w.daemons, newDaemon(t, node, i == 1))
	}
	must(t, w.tracked(t.Context()))
	return w
}

// Connection tracking begins with weft's tables. An earlier flow may look as if its answer had begun
// it.
func (w *world) tracked(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := w.rulesets(ctx, io.Discard)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.Join(err, w.err())
		}
	}
}

func (w *world) err() error {
	var errs []error
	for _, d := range w.daemons {
		errs = append(errs, d.err())
	}
	return errors.Join(errs...)
}

// rulesets writes weft's tables for policies.
func (w *world) rulesets(ctx context.Context, to io.Writer) error {
	var errs []error
	for _, d := range w.daemons {
		for _, family := range []string{"ip", "ip6"} {
			out, err := d.node.Run(ctx, "nft", "list", "table", family, "weft-policy")
			fmt.Fprintf(to, "--- %s\n%s", d.node.Name(), out)
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// check reports the flows that stay other than wanted, with the evaluator's reasons and the rulesets.
func (w *world) check(t *testing.T, name string, want map[flow]bool, c *policytest.Cluster) {
	t.Helper()
	d, err := w.agree(t.Context(), want)
	must(t, cmp.Or(err, w.err()))
	if len(d) == 0 {
		return
	}
	for _, one := range d[:min(len(d), 6)] {
		t.Errorf("%s: %s: %s", name, one, c.Evaluate(one.Flow))
	}
	var text strings.Builder
	err = w.rulesets(t.Context(), &text)
	t.Fatalf("%s: %d of %d flows differ\n%s%v", name, len(d), len(want), text.String(), err)
}
