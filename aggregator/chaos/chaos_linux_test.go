package chaos

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

var (
	durationFlag = flag.Duration("chaos.duration", 10*time.Second, "how long to run, over both modes")
	// In an ordinary run it is always the same, so that a failure is one of the change at hand.
	seedFlag  = flag.Uint64("chaos.seed", 1, "the seed")
	freshFlag = flag.Bool("chaos.fresh", false, "draw a seed")
)

// TestMain lets the test binary be each of the processes.
func TestMain(m *testing.M) {
	if config := os.Getenv(configEnv); config != "" {
		if err := runChild(config); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestChaos runs a seed in each mode for half of the time.
func TestChaos(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	seed := *seedFlag
	if *freshFlag {
		seed = rand.Uint64N(1 << 31)
	}
	for _, mode := range []string{"owned", "open"} {
		t.Run(mode, func(t *testing.T) {
			fmt.Printf("chaos: again with: go test ./aggregator/chaos -run TestChaos/%s -count=1 -v -chaos.seed %d -chaos.duration %v\n", mode, seed, *durationFlag)
			chaos(t, seed, mode == "owned", *durationFlag/2)
		})
	}
}

// chaos is one run.
func chaos(t *testing.T, seed uint64, owned bool, d time.Duration) {
	began := time.Now()
	c := newConductor(t, seed, owned)
	c.node, c.outside = nfttest.New(t), nfttest.New(t)
	t.Cleanup(c.end)
	from, to := wires(t, c.node)
	c.foreign.reset(c, "")
	c.launch()
	for _, p := range c.publishers {
		c.spawn(p)
	}
	service := c.publishers[0].fragments[0]
	c.send(service, author{c.rng, service}.change(nil), false)
	c.quiet()
	c.stream = openStream(t, from, to)
	c.run(d)
	bytes := c.stream.finish(c)
	fmt.Printf("chaos: %v, %d steps, %d bytes through the service: %+v\n", time.Since(began), c.step, bytes, c.sum)
	if c.sum.acked == 0 || c.sum.quiet == 0 {
		t.Errorf("%d updates acknowledged and %d quiet points: nothing was tested", c.sum.acked, c.sum.quiet)
	}
}

// broken is what no process may ever print.
var broken = regexp.MustCompile(`(?m)^(WARNING: DATA RACE|panic:|fatal error:).*`)

// end stops all processes; what is left of a run that failed is kept and named.
func (c *conductor) end() {
	for _, p := range c.publishers {
		if p.process != nil && !p.ended {
			_ = p.cmd.Process.Kill()
			c.wait(p.process)
		}
	}
	if c.daemon != nil {
		_ = c.daemon.cmd.Process.Kill()
		c.wait(c.daemon)
	}
	for _, name := range []string{"aggregator", "publishers"} {
		text, err := os.ReadFile(filepath.Join(c.dir, name))
		if at := broken.FindIndex(text); err == nil && at != nil {
			c.t.Errorf("%s printed:\n%s", name, text[at[0]:min(at[0]+4000, len(text))])
		}
	}
	if !c.t.Failed() {
		_ = os.RemoveAll(c.dir)
		return
	}
	text, _ := os.ReadFile(filepath.Join(c.dir, "journal"))
	lines := bytes.Split(text, []byte("\n"))
	c.t.Logf("the last of the journal (all of it and the logs are in %s):\n%s", c.dir, bytes.Join(lines[max(0, len(lines)-25):], []byte("\n")))
	if c.node != nil {
		listed, _ := c.node.Output("", "nft", "list", "ruleset")
		_ = os.WriteFile(filepath.Join(c.dir, "ruleset"), []byte(listed), 0o600)
		_ = os.WriteFile(filepath.Join(c.dir, "expected"), []byte(c.expected().String()), 0o600)
	}
}

// wait takes events until a process has ended.
func (c *conductor) wait(p *process) {
	for e := range c.events {
		if e.from == p && e.Kind == replyEnded {
			return
		}
	}
}

// String lists all lines.
func (r ruleset) String() string {
	var b strings.Builder
	for _, id := range sorted(r) {
		fmt.Fprintf(&b, "table %s\n\t%s\n", id, strings.Join(r[id], "\n\t"))
	}
	return b.String()
}
