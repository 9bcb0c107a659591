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
	durationFlag = flag.Duration("chaos.duration", 10*time.Second, "how long to run, over all modes and seeds")
	seedFlag     = flag.Uint64("chaos.seed", 0, "one seed to run; 0 runs those of the continuous integration")
	freshFlag    = flag.Bool("chaos.fresh", false, "draw a seed, where -chaos.seed names none")
	modeFlag     = flag.String("chaos.mode", "", `"owned" or "open" runs one mode alone`)
)

// seeds are those of an ordinary test run: always the same, so that a failure
// is one of the change at hand.
var seeds = []uint64{1}

// TestMain lets the test binary be each of the processes.
func TestMain(m *testing.M) {
	if role := os.Getenv(roleEnv); role != "" {
		if err := runRole(role); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", role, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestChaos runs each seed in each mode for its share of the time.
func TestChaos(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	run := seeds
	switch {
	case *seedFlag != 0:
		run = []uint64{*seedFlag}
	case *freshFlag:
		run = []uint64{1 + rand.Uint64N(1<<31)}
	}
	modes := []string{"owned", "open"}
	if *modeFlag != "" {
		modes = []string{*modeFlag}
	}
	share := *durationFlag / time.Duration(len(run)*len(modes))
	for _, seed := range run {
		for _, mode := range modes {
			t.Run(fmt.Sprintf("seed=%d/%s", seed, mode), func(t *testing.T) {
				again := fmt.Sprintf("go test ./aggregator/chaos -run TestChaos -count=1 -v -chaos.seed %d -chaos.mode %s -chaos.duration %v", seed, mode, share)
				fmt.Printf("chaos: seed %d; again with: %s\n", seed, again)
				chaos(t, seed, mode == "owned", share)
			})
		}
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
	c.watcher = watch(c.socket)
	for _, p := range c.publishers {
		c.spawn(p)
	}
	service := c.publishers[0].fragments[0]
	c.send(service, author{c.rng, service}.change(nil), opPut, false)
	c.quiet()
	c.stream = openStream(t, from, to)
	c.run(d)
	bytes := c.stream.finish(c)
	fmt.Println("chaos: " + c.report(bytes, time.Since(began)))
	if c.sum.acked == 0 || c.sum.quiet == 0 {
		t.Errorf("%d updates acknowledged and %d quiet points: nothing was tested", c.sum.acked, c.sum.quiet)
	}
}

// broken is what no process may ever print.
var broken = regexp.MustCompile(`(?m)^(WARNING: DATA RACE|panic:|fatal error:).*`)

// end stops all processes; what is left of a run that failed is kept and named.
func (c *conductor) end() {
	if c.watcher != nil {
		c.watcher.close()
	}
	for _, p := range c.publishers {
		if p.process != nil && !p.ended {
			_ = p.cmd.Process.Kill()
			c.wait(p.process)
		}
		if p.heir != nil {
			_ = p.heir.cmd.Process.Kill()
			c.wait(p.heir)
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
