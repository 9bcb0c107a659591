package aggregator_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/conntrack"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// mortalEnv has the test binary run a daemon, and says how it is to die.
const mortalEnv = "WEFT_TEST_MORTAL"

// mortal is a daemon that kills itself.
type mortal struct {
	Socket, StateDir string
	// Instant is when it dies: "before" its Commit-th batch is sent, when the
	// record is saved, "during" that, or "after" it, before the acknowledgements;
	// "" is never.
	Instant string
	Commit  int
	// Delay is that of "during", in microseconds.
	Delay int
	// Flows has it remove stale UDP flows.
	Flows bool
}

// lethal is the real kernel, at whose batch the process dies.
type lethal struct {
	*kernel.Conn
	m mortal
	n int
}

func (l *lethal) Commit(ops []kernel.Op) (kernel.Stats, error) {
	l.n++
	if l.n != l.m.Commit {
		return l.Conn.Commit(ops)
	}
	switch l.m.Instant {
	case "before":
		die()
	case "during":
		go func() {
			for until := time.Now().Add(time.Duration(l.m.Delay) * time.Microsecond); time.Now().Before(until); {
			}
			die()
		}()
	}
	stats, err := l.Conn.Commit(ops)
	if l.m.Instant == "after" || l.m.Instant == "during" {
		die()
	}
	return stats, err
}

// die ends the process as kill -9 does.
func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// TestMortalProcess is the daemon of TestKill: a process of its own, in the
// namespace in which it was started, until its standard input ends.
func TestMortalProcess(t *testing.T) {
	text := os.Getenv(mortalEnv)
	if text == "" {
		return
	}
	var m mortal
	must(t, json.Unmarshal([]byte(text), &m))
	conn, err := kernel.Open(kernel.Config{})
	must(t, err)
	cfg := aggregator.Config{Kernel: &lethal{Conn: conn, m: m}, StateDir: m.StateDir, Rate: 1000, Burst: 1}
	if m.Flows {
		cfg.Flows, err = conntrack.Open()
		must(t, err)
	}
	aggregatortest.Start(t, aggregatortest.Config{Socket: m.Socket, Config: cfg})
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// spawn starts a daemon in a namespace and waits until it commits, or is dead
// already: publishers are quick.
func (m mortal) spawn(t *testing.T, ns *nfttest.NS) *exec.Cmd {
	t.Helper()
	text, err := json.Marshal(m)
	must(t, err)
	cmd := exec.Command(os.Args[0], "-test.run=^TestMortalProcess$", "-test.v")
	cmd.Env = append(os.Environ(), mortalEnv+"="+string(text))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, ns.Do(cmd.Start))
	t.Cleanup(func() { _, _ = in.Close(), cmd.Process.Kill() })
	lines := bufio.NewScanner(out)
	said := ""
	for lines.Scan() && lines.Text() != "ready" {
		said += lines.Text() + "\n"
	}
	if lines.Text() != "ready" && m.Instant == "" {
		t.Fatalf("daemon ended early: %v\n%s", cmd.Wait(), said)
	}
	return cmd
}

// tenant is a publisher under load: it changes its fragment all the time. Version n
// of it has the element 1.ID.n/256.n%256, in a set of its own: the owners of
// elements of a shared set are unknown until all its publishers are back. The package chaos
// changes all of the content.
type tenant struct {
	id          int
	name        string
	lifetime    weftv1.Lifetime
	sent, acked atomic.Int64
	// bulk is a number of elements, all of which each version replaces.
	bulk int
}

// awayID is that of the publisher who never comes back.
const awayID = 200

// pin is an element, and a rule's comment, that a tenant never changes.
func pin(id int) (element, comment string) {
	return fmt.Sprintf("10.99.%d.1", id), fmt.Sprintf("pin-%d", id)
}

func (p *tenant) version(n int64) string { return fmt.Sprintf("1.%d.%d.%d", p.id, n/256, n%256) }

// fragment is the tenant's fragment as it is now.
func (p *tenant) fragment(string) *weftv1.Fragment {
	element, comment := pin(p.id)
	f := blocklist(p.name, element)
	f.Lifetime = p.lifetime
	t, n := f.Tables[0], p.sent.Load()
	t.Sets = append(t.Sets, &weftv1.Set{Name: "versions-" + p.name, Type: "ipv4_addr", Elements: elements(p.version(n))})
	t.Chains[0].Rules[0].Comment = comment
	for i := range p.bulk {
		t.Sets[0].Elements = append(t.Sets[0].Elements, &weftv1.Element{Key: fmt.Sprintf("11.%d.%d.%d", n%200, i/200, i%200)})
	}
	for i := range n % 6 {
		t.Chains[0].Rules = append(t.Chains[0].Rules, &weftv1.Rule{Text: fmt.Sprintf("ip ttl %d counter", i), Comment: p.name})
	}
	return f
}

// change changes the tenant's content, and returns the patch that does the same;
// nil where it takes a snapshot.
func (p *tenant) change(rnd *rand.Rand) *weftv1.Patch {
	n := p.sent.Add(1)
	if n == 1 || p.bulk > 0 || rnd.IntN(3) == 0 {
		return nil
	}
	u := patch(p.name, nil, nil)
	u.Tables[0].Elements = []*weftv1.ElementPatch{{Set: "versions-" + p.name, Add: elements(p.version(n)), Remove: []string{p.version(n - 1)}}}
	return u
}

// run publishes until stop is closed; every update must be acknowledged in the
// end, whatever happens in between.
func (p *tenant) run(ctx context.Context, c *client.Client, rnd *rand.Rand, stop <-chan struct{}) error {
	s := c.Session(client.SessionConfig{Snapshot: p.fragment})
	for {
		select {
		case <-stop:
			return s.Close()
		default:
		}
		var err error
		u := p.change(rnd)
		if u == nil {
			_, err = s.Put(ctx, p.fragment(""))
		} else {
			_, err = s.Patch(ctx, u)
		}
		switch {
		case err == nil:
			p.acked.Store(p.sent.Load())
		case ctx.Err() != nil:
			return errors.Join(err, s.Close())
		case !errors.Is(err, client.ErrUnavailable):
			return errors.Join(fmt.Errorf("%s: update %d: %w", p.name, p.sent.Load(), err), s.Close())
		}
	}
}

// newMonitor starts nft monitor in a namespace, and waits until it sees something.
func newMonitor(t *testing.T, ns *nfttest.NS) *logText {
	t.Helper()
	m := &logText{}
	cmd := exec.Command("nft", "monitor")
	cmd.Stdout, cmd.Stderr = m, m
	must(t, ns.Do(cmd.Start))
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	aggregatortest.Eventually(t, "nft monitor works", func() bool {
		ns.Nft(t, "add table ip probe\ndelete table ip probe")
		return strings.Contains(m.all(), "probe")
	})
	return m
}

var address = regexp.MustCompile(`\d+\.\d+\.\d+\.\d+`)

// addresses returns the members of a set, sorted.
func addresses(t *testing.T, ns *nfttest.NS, set string) []string {
	t.Helper()
	return slices.Sorted(slices.Values(address.FindAllString(ns.Run(t, "nft", "list", "set", "ip", "demo", set), -1)))
}

// estate is what TestKill looks after.
type estate struct {
	ns      *nfttest.NS
	tenants []*tenant
	// rules are the lines of the pinned rules, with handles.
	rules map[int]string
}

// inspect checks the kernel while no daemon runs: it holds of every tenant what
// was acknowledged, or what was on its way.
func (e *estate) inspect(t *testing.T, when string) {
	t.Helper()
	for _, p := range e.tenants {
		acked, versions := p.acked.Load(), addresses(t, e.ns, "versions-"+p.name)
		var got []int64
		for _, v := range versions {
			var id int
			var hi, lo int64
			if _, err := fmt.Sscanf(v, "1.%d.%d.%d", &id, &hi, &lo); err == nil && id == p.id {
				got = append(got, hi*256+lo)
			}
		}
		if acked > 0 && (len(got) != 1 || got[0] < acked || got[0] > p.sent.Load()) {
			t.Errorf("%s: %s has version %v: %d is acknowledged, %d was sent", when, p.name, got, acked, p.sent.Load())
		}
	}
	for id, line := range e.rules {
		element, comment := pin(id)
		set := "blocked"
		if id == awayID {
			set = "far"
		}
		if !slices.Contains(addresses(t, e.ns, set), element) {
			t.Errorf("%s: element %s is gone", when, element)
		}
		same(t, when+": rule", stripCounter(ruleLine(t, e.ns, `comment "`+comment+`"`)), line)
	}
}

func stripCounter(line string) string {
	return regexp.MustCompile(`packets \d+ bytes \d+`).ReplaceAllString(line, "")
}

// TestKill kills a daemon under load, in rounds, at every kind of instant. Between
// the rounds the kernel holds everything that was acknowledged; the next daemon
// adopts it, nothing that anybody still wants is withdrawn meanwhile, and what did
// not change is not touched.
func TestKill(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("WEFT_TEST_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		must(t, err)
	}
	t.Logf("seed %d (WEFT_TEST_SEED=%d repeats it)", seed, seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	e := &estate{ns: nfttest.New(t), rules: map[int]string{}}
	m := mortal{Socket: aggregatortest.Socket(t), StateDir: t.TempDir()}
	daemon := m.spawn(t, e.ns)
	seen := newMonitor(t, e.ns)
	ctx, cancel := context.WithTimeout(context.Background(), 3*aggregatortest.Wait)
	defer cancel()
	dial := func(name string) *client.Client {
		c, err := client.Dial(ctx, client.Config{Socket: m.Socket, Publisher: name})
		must(t, err)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}

	// One who never comes back, and one who always comes back with the same.
	far := (&tenant{id: awayID, name: "away"}).fragment("")
	far.Tables[0].Sets[0].Name = "far"
	far.Tables[0].Chains[0].Rules[0].Text = "ip saddr @far counter drop"
	must(t, errorOf(dial("away").Apply(ctx, far)))
	same := blocklist("same", "10.0.0.1", "10.0.0.2")
	same.Tables[0].Name = "still"
	still := session(t, dial("still"), nil)
	must(t, errorOf(still.Put(ctx, same)))

	stop, errs := make(chan struct{}), make(chan error, 4)
	for i, l := range []weftv1.Lifetime{
		weftv1.Lifetime_LIFETIME_STICKY, weftv1.Lifetime_LIFETIME_DURABLE, weftv1.Lifetime_LIFETIME_SESSION, weftv1.Lifetime_LIFETIME_STICKY,
	} {
		p := &tenant{id: i, name: fmt.Sprintf("tenant-%d", i), lifetime: l}
		if i == 3 {
			p.bulk = 3000
		}
		e.tenants = append(e.tenants, p)
		c, own := dial(p.name), rand.New(rand.NewPCG(seed, uint64(i)+1))
		go func() { errs <- p.run(ctx, c, own, stop) }()
	}
	all := func(what string, cond func(*tenant) bool) {
		t.Helper()
		aggregatortest.Eventually(t, what, func() bool { return !slices.ContainsFunc(e.tenants, func(p *tenant) bool { return !cond(p) }) })
	}
	all("everybody is there", func(p *tenant) bool { return p.acked.Load() > 0 })
	for _, id := range []int{0, 1, 2, 3, awayID} {
		_, comment := pin(id)
		e.rules[id] = stripCounter(ruleLine(t, e.ns, `comment "`+comment+`"`))
	}
	from := strings.Count(seen.all(), "\n") + 1

	instants := []string{"before", "during", "after", "anytime", "during", "anytime"}
	rnd.Shuffle(len(instants), func(i, j int) { instants[i], instants[j] = instants[j], instants[i] })
	for round, instant := range instants {
		_, _ = daemon.Process.Kill(), daemon.Wait() // it may be dead
		e.inspect(t, fmt.Sprintf("before round %d", round))
		life := m
		life.Instant, life.Commit, life.Delay = instant, 1+rnd.IntN(12), rnd.IntN(2000)
		t.Logf("round %d: dies %s commit %d (%d us)", round, instant, life.Commit, life.Delay)
		daemon = life.spawn(t, e.ns)
		if instant == "anytime" {
			before := e.tenants[0].acked.Load()
			aggregatortest.Eventually(t, "somebody is back", func() bool { return e.tenants[0].acked.Load() > before })
			timer := time.NewTimer(time.Duration(rnd.IntN(30_000)) * time.Microsecond)
			<-timer.C
			_ = daemon.Process.Kill()
		}
		_ = daemon.Wait()
		e.inspect(t, fmt.Sprintf("after round %d", round))
	}
	m.spawn(t, e.ns)
	close(stop)
	for range e.tenants {
		must(t, <-errs)
	}
	all("everything is acknowledged", func(p *tenant) bool { return p.acked.Load() == p.sent.Load() })

	e.tenants = slices.DeleteFunc(e.tenants, func(p *tenant) bool {
		gone := p.lifetime == weftv1.Lifetime_LIFETIME_SESSION // with its session
		if gone {
			delete(e.rules, p.id)
		}
		return gone
	})
	e.inspect(t, "at the end")
	total := int64(0)
	for _, p := range e.tenants {
		total += p.acked.Load()
	}
	t.Logf("%d updates were acknowledged", total)
	untouched(t, strings.Split(seen.all(), "\n")[from:])
}

// untouched checks that nothing that stays was touched on the way.
func untouched(t *testing.T, lines []string) {
	t.Helper()
	commits := 0
	for _, line := range lines {
		commits += strings.Count(line, "new generation")
		gone := strings.HasPrefix(line, "delete ") && (strings.Contains(line, "10.99.") || strings.Contains(line, "pin-")) &&
			!strings.Contains(line, "10.99.2.1") && !strings.Contains(line, "pin-2\"")
		// A table is claimed by adding it again, which changes nothing in it.
		if gone || strings.Contains(line, "ip still") && line != "add table ip still" {
			t.Errorf("nft monitor: %s", line)
		}
		if strings.Contains(line, "buffer") {
			t.Errorf("nft monitor missed something: %s", line)
		}
	}
	t.Logf("%d commits were seen", commits)
}
