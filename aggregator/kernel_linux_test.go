package aggregator_test

import (
	"errors"
	"net"
	"regexp"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// startKernel runs a daemon on the kernel of a namespace. The connection is
// closed with the test, or by the caller.
func startKernel(t testing.TB, ns *nfttest.NS, cfg aggregator.Config, noOwner bool) (*aggregatortest.Daemon, *kernel.Conn) {
	t.Helper()
	conn, err := kernel.Open(kernel.Config{NetNS: ns.FD(), NoOwner: noOwner})
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	cfg.Kernel = conn
	return aggregatortest.Start(t, aggregatortest.Config{Config: cfg}), conn
}

// counted is a fragment that counts packets from its members.
func counted(members ...string) *weftv1.Fragment {
	f := blocklist("counted", members...)
	f.Tables[0].Chains[0].Rules = []*weftv1.Rule{
		{Text: "ip saddr @blocked counter", Comment: "members"},
		{Text: "ip protocol udp counter accept"},
	}
	return f
}

// sendUDP sends packets over the namespace's loopback.
func sendUDP(t *testing.T, ns *nfttest.NS, n int) {
	t.Helper()
	err := ns.Do(func() error {
		c, err := net.Dial("udp4", "127.0.0.1:9")
		if err != nil {
			return err
		}
		defer func() { _ = c.Close() }()
		for range n {
			// The port is closed: a later write returns that error.
			_, _ = c.Write([]byte("x"))
		}
		return nil
	})
	must(t, err)
}

// ruleLine returns the line of "nft -a list ruleset" that has text.
func ruleLine(t *testing.T, ns *nfttest.NS, text string) string {
	t.Helper()
	for line := range strings.Lines(ns.Run(t, "nft", "-a", "list", "ruleset")) {
		if strings.Contains(line, text) {
			return strings.TrimSpace(line)
		}
	}
	t.Fatalf("ruleset lacks %q:\n%s", text, ns.ListRuleset(t))
	return ""
}

var packets = regexp.MustCompile(`packets [1-9]\d*`)

// TestKernelKeepsHandlesAndCounters changes everything around a rule.
func TestKernelKeepsHandlesAndCounters(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	ns := nfttest.New(t)
	d, _ := startKernel(t, ns, aggregator.Config{}, false)
	ctx := aggregatortest.Context(t)
	c := d.Dial(t, "tester")
	mustApply(t, c, counted("127.0.0.1"))
	sendUDP(t, ns, 5)
	before := ruleLine(t, ns, `comment "members"`)
	if !packets.MatchString(before) {
		t.Fatalf("rule did not count: %s", before)
	}
	s := session(t, c, func(string) *weftv1.Fragment { return counted("127.0.0.1", "10.0.0.1") })
	if _, err := s.Put(ctx, counted("127.0.0.1", "10.0.0.1")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Patch(ctx, patch("counted", []string{"10.0.0.2"}, []string{"10.0.0.1"})); err != nil {
		t.Fatal(err)
	}
	f := counted("127.0.0.1", "10.0.0.2")
	rules := f.Tables[0].Chains[0].Rules
	f.Tables[0].Chains[0].Rules = []*weftv1.Rule{{Text: "iifname != \"lo\" return"}, rules[0], {Text: "tcp dport { 22, 80 } accept"}}
	mustApply(t, c, f)
	if after := ruleLine(t, ns, `comment "members"`); after != before {
		t.Fatalf("the rule changed:\n before %s\n after  %s", before, after)
	}
	if text := ns.ListRuleset(t); !strings.Contains(text, "10.0.0.2") || strings.Contains(text, "10.0.0.1") || strings.Contains(text, "udp") {
		t.Fatalf("ruleset:\n%s", text)
	}
}

// TestKernelRestart kills the first daemon's connection, and has the second
// adopt what is there: other programs cannot change it before or after, and nothing
// is committed.
//
// Behaviour: 132, 145.
func TestKernelRestart(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	ns := nfttest.New(t)
	dir := t.TempDir()
	d, conn := startKernel(t, ns, aggregator.Config{StateDir: dir}, false)
	nfttest.RequireKernel(t, 6, 9)
	if !conn.Owner() {
		t.Fatal("the connection does not own its tables")
	}
	mustApply(t, d.Dial(t, "tester"), counted("127.0.0.1"))
	sendUDP(t, ns, 3)
	before := ruleLine(t, ns, `comment "members"`)
	foreign := func() {
		t.Helper()
		for _, args := range [][]string{
			{"add", "element", "ip", "demo", "blocked", "{ 10.9.9.9 }"},
			{"delete", "table", "ip", "demo"},
			{"flush", "chain", "ip", "demo", "input"},
		} {
			if _, err := ns.Output("", "nft", args...); err == nil || !strings.Contains(err.Error(), "Operation not permitted") {
				t.Fatalf("nft %v: %v: want EPERM", args, err)
			}
		}
		if _, err := ns.Output("", "nft", "flush", "ruleset"); err != nil {
			t.Fatal(err)
		}
	}
	foreign()
	// As after kill -9: the kernel closes the socket.
	must(t, conn.Close())
	// The kernel also closes the state directory.
	_ = d.Stop()
	d, conn = startKernel(t, ns, aggregator.Config{StateDir: dir}, false)
	generation, err := conn.Generation()
	must(t, err)
	foreign()
	c := d.Dial(t, "tester")
	mustApply(t, c, counted("127.0.0.1"))
	if after, err := conn.Generation(); err != nil || after != generation {
		t.Fatalf("generation %d became %d (%v): the restart must not commit", generation, after, err)
	}
	if after := ruleLine(t, ns, `comment "members"`); after != before {
		t.Fatalf("the rule changed:\n before %s\n after  %s", before, after)
	}
	mustApply(t, c, counted("127.0.0.2"))
	if text := ns.ListRuleset(t); !strings.Contains(text, "127.0.0.2") || strings.Contains(text, "127.0.0.1") {
		t.Fatalf("ruleset:\n%s", text)
	}
}

// TestKernelSecondDaemonIsTold starts a daemon while another one owns a table.
func TestKernelSecondDaemonIsTold(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	ns := nfttest.New(t)
	d, conn := startKernel(t, ns, aggregator.Config{}, false)
	nfttest.RequireKernel(t, 6, 9)
	if !conn.Owner() {
		t.Fatal("the connection does not own its tables")
	}
	ctx := aggregatortest.Context(t)
	mustApply(t, d.Dial(t, "tester"), blocklist("list", "10.0.0.1"))
	second, err := kernel.Open(kernel.Config{NetNS: ns.FD()})
	must(t, err)
	defer func() { _ = second.Close() }()
	a, err := aggregator.New(aggregator.Config{Kernel: second})
	must(t, err)
	if err := a.Run(ctx); err == nil || !strings.Contains(err.Error(), "ip demo is owned by") {
		t.Fatalf("second daemon: %v", err)
	}
}

// TestKernelUnprotectedTables starts a daemon that owns its tables on one that an older kernel
// left without an owner: it notices what others do with it, and repairs that.
func TestKernelUnprotectedTables(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	nfttest.RequireKernel(t, 6, 9)
	ns := nfttest.New(t)
	cfg := aggregator.Config{StateDir: t.TempDir()}
	d, conn := startKernel(t, ns, cfg, true)
	mustApply(t, d.Dial(t, "tester"), blocklist("list", "10.0.0.1"))
	must(t, errors.Join(d.Stop(), conn.Close()))
	again, _ := startKernel(t, ns, cfg, false)
	aggregatortest.Eventually(t, "it runs", func() bool { return !errors.Is(again.Aggregator.Converged(), aggregator.ErrStarting) })
	ns.Nft(t, "delete table ip demo")
	aggregatortest.Eventually(t, "the table is back", func() bool { return strings.Contains(ns.ListRuleset(t), "10.0.0.1") })
}

// TestKernelForeignTable publishes into a table that somebody else has made.
func TestKernelForeignTable(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	ns := nfttest.New(t)
	d, _ := startKernel(t, ns, aggregator.Config{}, false)
	ns.Nft(t, "table ip demo { chain theirs { counter; }; }")
	ctx := aggregatortest.Context(t)
	_, err := d.Dial(t, "tester").Apply(ctx, blocklist("list", "10.0.0.1"))
	r := rejection(t, err, weftv1.Violation_REASON_KERNEL)
	if !strings.Contains(r.Error(), "table ip demo") {
		t.Fatalf("rejection does not name the table: %v", r)
	}
	if text := ns.ListRuleset(t); !strings.Contains(text, "theirs") || strings.Contains(text, "blocked") {
		t.Fatalf("ruleset:\n%s", text)
	}
}

// TestKernelRepairsWithoutOwnership runs as on kernels before 6.9.
//
// Behaviour: 145.
func TestKernelRepairsWithoutOwnership(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	ns := nfttest.New(t)
	d, _ := startKernel(t, ns, aggregator.Config{}, true)
	c := d.Dial(t, "tester")
	mustApply(t, c, blocklist("list", "10.0.0.1"))
	want := ns.ListRuleset(t)
	events := watch(t, d)
	for _, args := range [][]string{
		{"flush", "ruleset"},
		{"delete", "element", "ip", "demo", "blocked", "{ 10.0.0.1 }"},
		{"add", "element", "ip", "demo", "blocked", "{ 10.6.6.6 }"},
		{"flush", "chain", "ip", "demo", "input"},
	} {
		ns.Run(t, "nft", args...)
		aggregatortest.Eventually(t, "what nft "+strings.Join(args, " ")+" did is repaired", func() bool {
			out, err := ns.Output("", "nft", "list", "ruleset")
			return err == nil && out == want
		})
	}
	events.until(t, "drift is told", func(e *weftv1.WatchResponse) bool { return e.GetDrift() != nil })
	mustApply(t, c, blocklist("list", "10.0.0.2"))
}

// TestKernelRestartKeepsDynamicSet restarts with a set that rules fill and that
// declares no size, which the kernel sets to 65535 (nft_dynset_init): the
// set is the declared one, and what packets added stays.
func TestKernelRestartKeepsDynamicSet(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	ns := nfttest.New(t)
	f := &weftv1.Fragment{Name: "seen", Lifetime: weftv1.Lifetime_LIFETIME_DURABLE, Tables: []*weftv1.Table{{
		Family: "ip", Name: "demo",
		Sets: []*weftv1.Set{{Name: "seen", Type: "ipv4_addr", Flags: []string{"dynamic", "timeout"}}},
		Chains: []*weftv1.Chain{{
			Name: "out", Type: "filter", Hook: "output", Priority: "filter",
			Rules: []*weftv1.Rule{{Text: "udp dport 9 update @seen { ip daddr timeout 1h }"}},
		}},
	}}}
	dir := t.TempDir()
	first, conn := startKernel(t, ns, aggregator.Config{StateDir: dir}, false)
	mustApply(t, first.Dial(t, "one"), f)
	sendUDP(t, ns, 1)
	before := ns.Run(t, "nft", "-a", "list", "set", "ip", "demo", "seen")
	if !strings.Contains(before, "127.0.0.1") {
		t.Fatalf("no element before the restart:\n%s", before)
	}
	must(t, conn.Close())
	_ = first.Stop()
	second, _ := startKernel(t, ns, aggregator.Config{StateDir: dir}, false)
	mustApply(t, second.Dial(t, "one"), f)
	after := ns.Run(t, "nft", "-a", "list", "set", "ip", "demo", "seen")
	handle := func(s string) string {
		_, rest, _ := strings.Cut(s, "# handle ")
		n, _, _ := strings.Cut(rest, "\n")
		return n
	}
	if !strings.Contains(after, "127.0.0.1") || handle(after) != handle(before) {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}
