package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// Config says how to run the demo.
type Config struct {
	// Args are the arguments with which this program runs the demo: it starts
	// itself anew in namespaces of its own. They must lead to Run.
	Args           []string
	Stdout, Stderr io.Writer
}

// errFailed means that a step failed. The step has been printed.
var errFailed = errors.New("demo failed")

// limit is the maximum duration of a run.
const limit = 2 * time.Minute

// Run runs the demo and prints each step. It returns an error if a step fails or the cluster
// cannot be made.
func Run(ctx context.Context, cfg Config) error {
	if os.Getenv(isolated) == "" {
		var exit *exec.ExitError
		err := isolate(ctx, cfg)
		if errors.As(err, &exit) {
			// The other process has said what it was.
			return errFailed
		}
		return err
	}
	mountProc()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	d, err := newDemo(cfg.Stdout)
	if err != nil {
		return errors.Join(err, d.close())
	}
	return errors.Join(d.run(ctx), d.close())
}

// demo is one run: the cluster, its processes, and the traffic that lasts over
// several steps.
type demo struct {
	out io.Writer
	// dir holds sockets, manifests, state and logs.
	dir       string
	cluster   *cluster
	manifests *manifests
	servers   []*process
	policy    *process
	// nft is the path of nft(8), empty where it is not installed.
	nft string
	// stream lasts from the first step to the last; flow while its backend
	// goes.
	stream *tcpStream
	// before is the ruleset as it was when weft was killed.
	before ruleset
	// removed is the endpoint that has been taken out.
	removed string
}

// newDemo builds the cluster. On an error the demo must be closed as well.
func newDemo(out io.Writer) (*demo, error) {
	d := &demo{out: out}
	d.nft, _ = exec.LookPath("nft")
	var err error
	if d.dir, err = os.MkdirTemp("", "weft-demo-"); err != nil {
		return d, fmt.Errorf("make directory: %w", err)
	}
	if d.cluster, err = newCluster(); err != nil {
		return d, err
	}
	dir := filepath.Join(d.dir, "manifests")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return d, fmt.Errorf("make directory: %w", err)
	}
	d.manifests = &manifests{dir: dir, cluster: d.cluster, web: d.cluster.servers()}
	return d, nil
}

// startServers runs a server in each pod that has one, and waits for them.
func (d *demo) startServers(ctx context.Context) error {
	for _, p := range d.cluster.servers() {
		proc, err := start(p.Namespace, d.dir, p.Name, "demo", "serve", "--name", p.Name)
		if err != nil {
			return err
		}
		d.servers = append(d.servers, proc)
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for _, proc := range d.servers {
		if err := proc.expect(ctx, "serves"); err != nil {
			return err
		}
	}
	return nil
}

// close ends all processes and removes namespaces and files.
func (d *demo) close() error {
	if d.stream != nil {
		d.stream.close()
	}
	if d.policy != nil {
		d.policy.stop()
	}
	for _, p := range d.servers {
		p.stop()
	}
	var err error
	if d.cluster != nil {
		for _, n := range d.cluster.nodes {
			if n.weft != nil {
				n.weft.stop()
			}
		}
		err = d.cluster.close()
	}
	return errors.Join(err, os.RemoveAll(d.dir))
}
