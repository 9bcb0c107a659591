package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// errFailed means that a step failed. The step has been printed.
var errFailed = errors.New("demo failed")

// limit is the maximum duration of a run.
const limit = 2 * time.Minute

// Run runs the demo and prints each step. It returns an error if a step fails or the cluster
// cannot be made. It starts this program again, with the same arguments, in namespaces of
// its own: they must lead to Run.
func Run(ctx context.Context, stdout, stderr io.Writer) error {
	if os.Getenv(isolated) == "" {
		err := isolate(ctx, stdout, stderr)
		if errors.As(err, new(*exec.ExitError)) {
			// The other process has printed the reason.
			return errFailed
		}
		return err
	}
	mountProc()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	d, err := newDemo(stdout)
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
	dir     string
	cluster *cluster
	policy  *process
	// nft is the path of nft(8), empty where it is not installed.
	nft string
	// stream lasts from the first step to the last; flow while its backend
	// goes.
	stream *tcpStream
	// before is the ruleset as it was when weft was killed.
	before ruleset
	// removed is the endpoint of web that is removed at present, or "".
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
	if err := os.CopyFS(d.dir, embedded); err != nil {
		return d, fmt.Errorf("write manifests: %w", err)
	}
	d.cluster, err = newCluster()
	return d, err
}

// close ends all processes and removes namespaces and files.
func (d *demo) close() error {
	if d.stream != nil {
		d.stream.stop()
	}
	if d.policy != nil {
		d.policy.stop()
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
