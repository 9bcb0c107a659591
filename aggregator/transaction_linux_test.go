package aggregator_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// picks returns a fragment in two families whose verdict map leads to chains: what
// a change of it does concerns rules, chains, sets and elements at once.
func picks(numbers ...int) *weftv1.Fragment {
	f := &weftv1.Fragment{Name: "picks"}
	for _, family := range []string{"ip", "ip6"} {
		table := &weftv1.Table{Family: family, Name: "demo"}
		services := &weftv1.Set{Name: "services", Type: "inet_proto . inet_service : verdict"}
		for _, n := range numbers {
			chain := fmt.Sprintf("pick-%d", n)
			services.Elements = append(services.Elements, &weftv1.Element{Key: fmt.Sprintf("tcp . %d", 1000+n), Value: "goto " + chain})
			table.Chains = append(table.Chains, &weftv1.Chain{Name: chain, Rules: []*weftv1.Rule{{Text: fmt.Sprintf("tcp dport != @set-%d counter accept", n)}}})
			table.Sets = append(table.Sets, &weftv1.Set{Name: fmt.Sprintf("set-%d", n), Type: "inet_service", Elements: elements(fmt.Sprint(n))})
		}
		table.Maps = []*weftv1.Set{services}
		table.Chains = append(table.Chains, &weftv1.Chain{
			Name: "input", Type: "filter", Hook: "input", Priority: "filter",
			Rules: []*weftv1.Rule{{Text: "meta l4proto . th dport vmap @services", Comment: fmt.Sprint(numbers)}},
		})
		f.Tables = append(f.Tables, table)
	}
	return f
}

// TestUpdateIsOneTransaction replaces chains, and the elements that lead to them,
// in both families: the ruleset has one generation more after each update, and one before it
// in which there are the new chains, to which nothing leads. The chains that nothing leads to
// any more are gone with it.
//
// Behaviour: 134, 138.
func TestUpdateIsOneTransaction(t *testing.T) {
	ns, d, conn := onKernel(t, aggregator.Config{}, false)
	c := d.Dial(t, "tester")
	generation, err := conn.Generation()
	must(t, err)
	for _, update := range []struct {
		numbers      []int
		transactions uint32
	}{{[]int{1, 2, 3}, 1}, {[]int{3, 4}, 2}, {[]int{5}, 2}, {[]int{4, 5}, 2}, {[]int{5}, 1}, {nil, 1}} {
		numbers := update.numbers
		mustApply(t, c, picks(numbers...))
		now, err := conn.Generation()
		if err != nil || now != generation+update.transactions {
			t.Fatalf("generation %d became %d (%v) with pick chains %v, want %d transactions", generation, now, err, numbers, update.transactions)
		}
		generation = now
		text := ns.ListRuleset(t)
		for n := 1; n <= 5; n++ {
			want := 0
			for _, there := range numbers {
				if there == n {
					want = 2
				}
			}
			same(t, fmt.Sprintf("chains pick-%d", n), strings.Count(text, fmt.Sprintf("chain pick-%d {", n)), want)
		}
	}
}

// TestRefusedUpdateLeavesNothing has the kernel refuse an update after its new chains went ahead, with rules, jumps, sets, a
// verdict map and a counter that only they need: all of that is removed, and the rules in force are as they were.
// The kernel is not read for that.
func TestRefusedUpdateLeavesNothing(t *testing.T) {
	cfg, _, reg := observed(aggregator.Config{})
	ns, d, conn := onKernel(t, cfg, false)
	ctx := aggregatortest.Context(t)
	c := d.Dial(t, "tester")
	mustApply(t, c, picks(1, 2))
	refused := picks(1, 2, 3)
	for _, table := range refused.GetTables() {
		table.Objects = []*weftv1.Object{{Kind: "counter", Name: "hits"}}
		table.Maps = append(table.Maps, &weftv1.Set{Name: "further", Type: "inet_service : verdict", Elements: []*weftv1.Element{{Key: "7", Value: "goto leaf"}}})
		table.Chains = append(table.Chains,
			&weftv1.Chain{Name: "leaf", Rules: []*weftv1.Rule{{Text: "counter name hits drop"}}},
			&weftv1.Chain{Name: "branch", Rules: []*weftv1.Rule{{Text: "tcp dport vmap @further"}, {Text: "jump leaf"}}},
			// The kernel refuses it where it is in force: reject is not for postrouting.
			&weftv1.Chain{Name: "bad", Type: "filter", Hook: "postrouting", Priority: "filter", Rules: []*weftv1.Rule{{Text: "tcp dport 9 reject"}}})
		for _, chain := range table.GetChains() {
			if chain.GetName() == "pick-3" {
				chain.Rules = append(chain.Rules, &weftv1.Rule{Text: "jump branch"})
			}
		}
	}
	before, dumps := ns.ListRuleset(t), metric(t, reg, "weft_aggregator_work_total", "dumps")
	for range 3 {
		generation, err := conn.Generation()
		must(t, err)
		rejection(t, errorOf(c.Apply(ctx, refused)), weftv1.Violation_REASON_KERNEL)
		if now, err := conn.Generation(); err != nil || now != generation+2 {
			t.Errorf("%d transactions were made (%v), want that of the chains and their removal", now-generation, err)
		}
		same(t, "the ruleset after a refused update", ns.ListRuleset(t), before)
	}
	same(t, "how often the kernel was read for refused updates", metric(t, reg, "weft_aggregator_work_total", "dumps")-dumps, 0)
}

// TestStopLeavesTraffic stops the daemon as SIGTERM does: the rules stay, and new
// connections are led to backends while no daemon runs.
//
// Behaviour: 132, 139.
func TestStopLeavesTraffic(t *testing.T) {
	n := newFlowNode(t)
	d, stop := n.run(t)
	n.publish(t, d, dnsTo1)
	before := n.ns.ListRuleset(t)
	stop()
	if after := n.ns.ListRuleset(t); stripOwner(after) != stripOwner(before) {
		t.Fatalf("ruleset after the stop:\n%s\nbefore:\n%s", after, before)
	}
	n.send(t, 4001, "10.96.0.1:53", true)
	// The next start writes the difference, and nothing else.
	d, k := startKernel(t, n.ns, aggregator.Config{Flows: n.conn, StateDir: n.dir}, false)
	generation, err := k.Generation()
	must(t, err)
	n.publish(t, d, dnsTo1)
	if now, err := k.Generation(); err != nil || now != generation {
		t.Fatalf("generation %d became %d (%v), though nothing had changed", generation, now, err)
	}
	events := watch(t, d)
	n.publish(t, d, dnsTo1, otherTo1)
	e := events.until(t, "the difference is committed", func(e *weftv1.WatchResponse) bool { return e.GetCommit() != nil })
	if c := e.GetCommit().GetChanges(); c.GetElementsAdded() != 1 || c.GetElementsDeleted() != 0 || c.GetRulesAdded() != 0 || c.GetChains() != 0 || c.GetSets() != 0 {
		t.Errorf("the start changed %v, want one element", c)
	}
	n.send(t, 4002, "10.96.0.2:53", true)
}

// stripOwner leaves out what says that a process owns a table, and which.
func stripOwner(ruleset string) string {
	var out []string
	for line := range strings.Lines(ruleset) {
		line, _, _ = strings.Cut(line, "# progname")
		if line = strings.TrimRight(line, " \n"); line != "\tflags" && line != "\tflags owner" {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}

// TestNamesAtTheirLimit commits names and comments of the greatest length that the
// kernel takes, and refuses longer ones: only the update that has them.
//
// Behaviour: 168, 169.
func TestNamesAtTheirLimit(t *testing.T) {
	ns, d, _ := onKernel(t, aggregator.Config{}, false)
	ctx := aggregatortest.Context(t)
	c := d.Dial(t, "tester")
	named := func(fragment string, name, comment int) *weftv1.Fragment {
		long, remark := "x"+strings.Repeat("n", name-1), strings.Repeat("c", comment)
		return &weftv1.Fragment{Name: fragment, Tables: []*weftv1.Table{{
			Family: "ip", Name: "demo",
			Maps: []*weftv1.Set{{Name: long, Type: "ipv4_addr : verdict", Elements: []*weftv1.Element{
				{Key: "10.0.0.1", Value: "goto " + long, Comment: remark},
			}}},
			Chains: []*weftv1.Chain{{Name: long, Rules: []*weftv1.Rule{{Text: "ip daddr vmap @" + long, Comment: remark}}}},
		}}}
	}
	mustApply(t, c, named("longest", 255, 128))
	text := ns.ListRuleset(t)
	if got := strings.Count(text, strings.Repeat("n", 254)); got != 4 || strings.Count(text, strings.Repeat("c", 128)) != 2 {
		t.Fatalf("the ruleset has the name %d times, want 4, and the comment twice:\n%s", got, text)
	}
	for _, f := range []*weftv1.Fragment{named("name", 256, 1), named("comment", 9, 129)} {
		rejection(t, errorOf(c.Apply(ctx, f)), weftv1.Violation_REASON_INVALID)
		must(t, errorOf(c.Apply(ctx, blocklist("after-"+f.GetName(), "10.0.0.1"))))
	}
	if text := ns.ListRuleset(t); strings.Contains(text, "xnnnnnnnn {") || !strings.Contains(text, "10.0.0.1") {
		t.Fatalf("ruleset:\n%s", text)
	}
}

// sendPairs sends packets from two addresses of loopback, in turns, until ctx ends and one
// pair more. Both pass until the rule is in force, and none after. One pair may be in
// between. It returns the number of pairs.
func sendPairs(ctx context.Context, tb testing.TB, ns *nfttest.NS, first, last netip.Addr) (pairs int) {
	tb.Helper()
	var conns [2]*net.UDPConn
	for i, addr := range []netip.Addr{first, last} {
		err := ns.Do(func() (err error) {
			conns[i], err = net.DialUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(addr, 0)), &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9})
			return err
		})
		if err != nil {
			tb.Fatal(err)
		}
		defer func() { _ = conns[i].Close() }()
	}
	dropped := func(c *net.UDPConn) bool {
		_, err := c.Write([]byte("x"))
		if errors.Is(err, syscall.ECONNREFUSED) { // the answer to the packet before
			_, err = c.Write([]byte("x"))
		}
		return errors.Is(err, syscall.EPERM)
	}
	tick := time.NewTicker(200 * time.Microsecond)
	defer tick.Stop()
	before, mixed := false, 0
	for over := false; ; {
		a, z := dropped(conns[0]), dropped(conns[1])
		pairs++
		switch {
		case a && !z, before && !z:
			tb.Fatalf("pair %d: the first is dropped: %t, the last: %t", pairs, a, z)
		case z && !a:
			mixed++
		}
		before = z
		if over {
			if !a || !z || mixed > 1 {
				tb.Fatalf("at the end, the first is dropped: %t, the last: %t; %d pairs were in between", a, z, mixed)
			}
			return pairs
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			over = true
		}
	}
}

// TestLargeUpdateWithPackets stages a set while packets flow.
func TestLargeUpdateWithPackets(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces)
	ns := nfttest.New(t)
	d, _ := startKernel(t, ns, aggregator.Config{}, false)
	f := listOf("large", manyElements)
	f.Tables[0].Sets[0].Elements[0].Key = "127.0.0.1"
	f.Tables[0].Sets[0].Elements[manyElements-1].Key = "127.0.0.2"
	f.Tables[0].Chains[0].Hook = "output"
	ctx, cancel := context.WithCancel(aggregatortest.Context(t))
	done := make(chan error, 1)
	go func() {
		defer cancel()
		_, err := d.Aggregator.Apply(ctx, "large", f)
		done <- err
	}()
	if n := sendPairs(ctx, t, ns, netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2")); n < 3 {
		t.Errorf("only %d pairs of packets", n)
	}
	must(t, <-done)
}
