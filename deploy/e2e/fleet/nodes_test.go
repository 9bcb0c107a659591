package fleet

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/weft-proxy/weft/deploy/e2e/cluster"
)

const watchesPerNode = 4

// second is one line of the nodes' process.
type second struct {
	// requests and refused connections at the API server
	arrived, refused int
	// open at the end of the second
	watches int
}

// nodes is the process with all nodes.
type nodes struct {
	seconds <-chan second
	in      io.Writer
}

// startNodes runs nodes with a retry policy until the returned function is called.
func startNodes(t *testing.T, c *cluster.Cluster, policy string) (*nodes, func()) {
	t.Helper()
	ca := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(ca, c.CA(), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(tests.Path(nodesProgram), "-server", c.URL(), "-ca", ca, "-token", c.Admin().BearerToken, //nolint:gosec // ours
		"-policy", policy, "-nodes", strconv.Itoa(*nodesFlag))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	seconds := make(chan second, 3600)
	go func() {
		defer close(seconds)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var s second
			if _, err := fmt.Sscan(lines.Text(), &s.arrived, &s.refused, &s.watches); err == nil {
				seconds <- s
			}
		}
	}()
	stop := func() {
		in.Close()
		for range seconds { //nolint:revive // until its end
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("nodes: %v", err)
		}
	}
	return &nodes{seconds: seconds, in: in}, stop
}

// say sends the process a command, and drops earlier seconds.
func (n *nodes) say(t *testing.T, command string) {
	t.Helper()
	for len(n.seconds) > 0 {
		<-n.seconds
	}
	if _, err := fmt.Fprintln(n.in, command); err != nil {
		t.Fatal(err)
	}
}

func (n *nodes) during(t *testing.T, d time.Duration) []second {
	t.Helper()
	return n.until(t, d, func(passed time.Duration, _ second) bool { return passed >= d })
}

func (n *nodes) untilOpen(t *testing.T) []second {
	t.Helper()
	return n.until(t, *patienceFlag, func(_ time.Duration, s second) bool { return s.watches >= watchesPerNode**nodesFlag })
}

// until returns the seconds until enough is true, and fails long after most.
func (n *nodes) until(t *testing.T, most time.Duration, enough func(time.Duration, second) bool) []second {
	t.Helper()
	began := time.Now()
	var all []second
	for s := range n.seconds {
		all = append(all, s)
		passed := time.Since(began)
		if enough(passed, s) {
			return all
		}
		if passed > most+*patienceFlag {
			t.Fatalf("after %v %d of %d watches are open", passed, s.watches, watchesPerNode**nodesFlag)
		}
	}
	t.Fatal(errors.New("the nodes' process has ended"))
	return nil
}
