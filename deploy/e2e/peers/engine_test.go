package peers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// engine is a program that enforces policies on the node.
type engine struct {
	name    string
	argv    []string
	node    *lab.Node
	process *lab.Process
}

const weft = "weft"

// weft's state directory and the ruleset are empty at each start.
const stateDir = runDir + "/state"

func newWeft(node *lab.Node) *engine {
	return &engine{name: weft, node: node, argv: []string{
		tests.Path(weft), "run", "--network-policy", "--kubeconfig", "$KUBECONFIG", "--hostname-override", "$NODE", "--cluster-cidr", "$CLUSTER_CIDR",
		// A namespace may not change the machine's limits.
		"--conntrack-max-per-core=0", "--conntrack-tcp-timeout-established=0", "--conntrack-tcp-timeout-close-wait=0",
		"--socket", runDir + "/weft.sock", "--state-dir", stateDir, "--metrics-bind-address", "", "--healthz-bind-address", "",
	}}
}

// newPeer reads NAME=PROGRAM ARGUMENTS.
func newPeer(node *lab.Node, s string) (*engine, error) {
	name, command, _ := strings.Cut(s, "=")
	argv := strings.Fields(command)
	if name == "" || len(argv) == 0 {
		return nil, fmt.Errorf("-peers.engine=%s: want NAME=PROGRAM ARGUMENTS", s)
	}
	return &engine{name: name, node: node, argv: argv}, nil
}

// start requires a node without rules.
func (e *engine) start(ctx context.Context, kubeconfig string) error {
	if err := errors.Join(os.RemoveAll(stateDir), os.MkdirAll(stateDir, 0o750), os.MkdirAll(logDir, 0o755)); err != nil {
		return fmt.Errorf("make directories: %w", err)
	}
	if _, err := e.node.Run(ctx, "nft", "flush", "ruleset"); err != nil {
		return err
	}
	variables := map[string]string{"KUBECONFIG": kubeconfig, "NODE": e.node.Name(), "CLUSTER_CIDR": lab.ClusterCIDRs()[0].String()}
	var argv []string
	for _, a := range e.argv {
		argv = append(argv, os.Expand(a, func(name string) string { return variables[name] }))
	}
	var err error
	e.process, err = e.node.Start(e.name, filepath.Join(logDir, e.name+".log"), nil, argv...)
	return err
}

// stop waits for the engine's present work.
func (e *engine) stop() error {
	const patience = time.Minute
	return e.process.Stop(patience)
}

// idle waits until the engine uses less than 2% of a CPU without child processes, and returns its CPU
// time.
func (e *engine) idle(ctx context.Context) (time.Duration, error) {
	const interval = 500 * time.Millisecond
	tick := time.NewTicker(interval)
	defer tick.Stop()
	last, err := e.process.CPU()
	for err == nil {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return 0, fmt.Errorf("wait until %s is idle: %w", e.name, ctx.Err())
		}
		var now time.Duration
		if now, err = e.process.CPU(); now-last < interval/50 && !e.hasChildren() {
			return now, err
		}
		last = now
	}
	return 0, err
}

// The CPU time of a child is unknown before its end.
func (e *engine) hasChildren() bool {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range files {
		// An ended process has no file. The parent is the fourth field, after the name in brackets and
		// the state.
		b, _ := os.ReadFile(name)
		_, rest, _ := strings.Cut(string(b), ") ")
		if f := strings.Fields(rest); len(f) > 1 && f[1] == strconv.Itoa(e.process.PID()) {
			return true
		}
	}
	return false
}
