package aggregator_test

import (
	"errors"
	"net"
	"net/netip"
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

// onKernel runs a daemon on the kernel of a new namespace.
func onKernel(t testing.TB, cfg aggregator.Config, noOwner bool) (*nfttest.NS, *aggregatortest.Daemon, *kernel.Conn) {
	t.Helper()
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	ns := nfttest.New(t)
	d, conn := startKernel(t, ns, cfg, noOwner)
	return ns, d, conn
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
	ns, d, _ := onKernel(t, aggregator.Config{}, false)
	ctx := aggregatortest.Context(t)
	c := d.Dial(t, "tester")
	mustApply(t, c, counted("127.0.0.1"))
	sendUDP(t, ns, 5)
	before := ruleLine(t, ns, `comment "members"`)
	if !packets.MatchString(before) {
		t.Fatalf("rule did not count: %s", before)
	}
	s := session(t, c, func(string) *weftv1.Fragment { return counted("127.0.0.1", "10.0.0.1") })
	must(t, errorOf(s.Put(ctx, counted("127.0.0.1", "10.0.0.1"))))
	must(t, errorOf(s.Patch(ctx, patch("counted", []string{"10.0.0.2"}, []string{"10.0.0.1"}))))
	f := counted("127.0.0.1", "10.0.0.2")
	rules := f.Tables[0].Chains[0].Rules
	f.Tables[0].Chains[0].Rules = []*weftv1.Rule{{Text: "iifname != \"lo\" return"}, rules[0], {Text: "tcp dport { 22, 80 } accept"}}
	mustApply(t, c, f)
	same(t, "the rule", ruleLine(t, ns, `comment "members"`), before)
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
	dir := t.TempDir()
	ns, d, conn := onKernel(t, aggregator.Config{StateDir: dir}, false)
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
		must(t, errorOf(ns.Output("", "nft", "flush", "ruleset")))
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
	same(t, "the rule", ruleLine(t, ns, `comment "members"`), before)
	mustApply(t, c, counted("127.0.0.2"))
	if text := ns.ListRuleset(t); !strings.Contains(text, "127.0.0.2") || strings.Contains(text, "127.0.0.1") {
		t.Fatalf("ruleset:\n%s", text)
	}
}

// TestKernelUnprotectedTables starts a daemon that owns its tables on one that an older kernel
// left without an owner: it notices what others do with it, and repairs that.
func TestKernelUnprotectedTables(t *testing.T) {
	nfttest.RequireKernel(t, 6, 9)
	cfg := aggregator.Config{StateDir: t.TempDir()}
	ns, d, conn := onKernel(t, cfg, true)
	mustApply(t, d.Dial(t, "tester"), blocklist("list", "10.0.0.1"))
	must(t, errors.Join(d.Stop(), conn.Close()))
	again, _ := startKernel(t, ns, cfg, false)
	aggregatortest.Eventually(t, "it runs", func() bool { return !errors.Is(again.Aggregator.Converged(), aggregator.ErrStarting) })
	ns.Nft(t, "delete table ip demo")
	aggregatortest.Eventually(t, "the table is back", func() bool { return strings.Contains(ns.ListRuleset(t), "10.0.0.1") })
}

// TestKernelForeignTable publishes into a table that somebody else has made.
func TestKernelForeignTable(t *testing.T) {
	ns, d, _ := onKernel(t, aggregator.Config{}, false)
	ns.Nft(t, "table ip demo { chain theirs { counter; }; }")
	ctx := aggregatortest.Context(t)
	r := rejection(t, errorOf(d.Dial(t, "tester").Apply(ctx, blocklist("list", "10.0.0.1"))), weftv1.Violation_REASON_KERNEL)
	if !strings.Contains(r.Error(), "table ip demo") {
		t.Fatalf("rejection does not name the table: %v", r)
	}
	if text := ns.ListRuleset(t); !strings.Contains(text, "theirs") || strings.Contains(text, "blocked") {
		t.Fatalf("ruleset:\n%s", text)
	}
}

// TestKernelRestartKeepsDynamicSet restarts with a set that rules fill and that
// declares no size, which the kernel sets to 65535 (nft_dynset_init): the
// set is the declared one, and what packets added stays.
func TestKernelRestartKeepsDynamicSet(t *testing.T) {
	f := &weftv1.Fragment{Name: "seen", Lifetime: weftv1.Lifetime_LIFETIME_DURABLE, Tables: []*weftv1.Table{{
		Family: "ip", Name: "demo",
		Sets: []*weftv1.Set{{Name: "seen", Type: "ipv4_addr", Flags: []string{"dynamic", "timeout"}}},
		Chains: []*weftv1.Chain{{
			Name: "out", Type: "filter", Hook: "output", Priority: "filter",
			Rules: []*weftv1.Rule{{Text: "udp dport 9 update @seen { ip daddr timeout 1h }"}},
		}},
	}}}
	dir := t.TempDir()
	ns, first, conn := onKernel(t, aggregator.Config{StateDir: dir}, false)
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

// TestIndexByName has rules that compare the index of an interface with its name, while the interface is not
// there, there, gone, and back under another index.
func TestIndexByName(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	ns, peer := nfttest.New(t), nfttest.New(t)
	d, _ := startKernel(t, ns, aggregator.Config{}, false)
	from := []*weftv1.Rule{{Text: `iif "wg0" udp dport 9 counter`}, {Text: `iif != "wg0" udp dport 9 counter`}, {Text: `fib saddr oif "wg0" udp dport 9 counter`}}
	if _, err := d.Dial(t, "tester").Apply(aggregatortest.Context(t), &weftv1.Fragment{Name: "links", Tables: []*weftv1.Table{{Family: "inet", Name: "links",
		Chains: []*weftv1.Chain{{Name: "input", Type: "filter", Hook: "input", Priority: "0", Rules: from}}}}}); err != nil {
		t.Fatal(err)
	}
	send := func(from *nfttest.NS, to string) {
		t.Helper()
		if err := from.Do(func() error {
			c, err := net.Dial("udp", to)
			if err != nil {
				return err
			}
			defer func() { _ = c.Close() }()
			_, err = c.Write([]byte("?"))
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	counted := func(want ...string) {
		t.Helper()
		aggregatortest.Eventually(t, strings.Join(want, ", "), func() bool {
			list := ns.ListRuleset(t)
			for i, rule := range []string{`iifname "wg0" udp dport 9`, `iifname != "wg0" udp dport 9`, `fib saddr oifname "wg0" udp dport 9`} {
				if !strings.Contains(list, rule+" counter packets "+want[i]+" ") {
					return false
				}
			}
			return true
		})
	}
	ns.Run(t, "ip", "link", "set", "lo", "up")
	send(ns, "127.0.0.1:9")
	counted("0", "1", "0")
	for i, want := range []string{"1", "2"} {
		// Another link takes the index.
		ns.Run(t, "ip", "link", "add", "other"+want, "type", "bridge")
		nfttest.Veth(t, nfttest.Port{NS: ns, Name: "wg0", Addrs: []netip.Prefix{netip.MustParsePrefix("10.7.0.1/24")}},
			nfttest.Port{NS: peer, Name: "p" + want, Addrs: []netip.Prefix{netip.MustParsePrefix("10.7.0.2/24")}})
		send(peer, "10.7.0.1:9")
		counted(want, []string{"1", "2"}[i], want)
		ns.Run(t, "ip", "link", "del", "wg0")
		send(ns, "127.0.0.1:9")
		counted(want, []string{"2", "3"}[i], want)
	}
}
