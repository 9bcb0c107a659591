package aggregator_test

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/kernel"
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
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	ns := nfttest.New(t)
	d, conn := startKernel(t, ns, aggregator.Config{}, false)
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
			if got := strings.Count(text, fmt.Sprintf("chain pick-%d {", n)); got != want {
				t.Fatalf("chain pick-%d is there %d times, want %d:\n%s", n, got, want, text)
			}
		}
	}
}

// TestRefusedUpdateLeavesNothing has the kernel refuse an update after its new chains went ahead, with rules, jumps, sets, a
// verdict map and a counter that only they need: all of that is removed, and the rules in force are as they were.
func TestRefusedUpdateLeavesNothing(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	ns := nfttest.New(t)
	d, conn := startKernel(t, ns, aggregator.Config{}, false)
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
	before := ns.ListRuleset(t)
	for range 3 {
		generation, err := conn.Generation()
		must(t, err)
		_, err = c.Apply(ctx, refused)
		rejection(t, err, weftv1.Violation_REASON_KERNEL)
		if now, err := conn.Generation(); err != nil || now != generation+2 {
			t.Errorf("%d transactions were made (%v), want that of the chains and their removal", now-generation, err)
		}
		if after := ns.ListRuleset(t); after != before {
			t.Fatalf("after a refused update:\n%s\nbefore:\n%s", after, before)
		}
	}
}

// TestTrafficDuringUpdates has a client make connections to a service without a
// pause, while the same fragment's other services come, go and are replaced with all
// that belongs to them: each connection is answered.
//
// Behaviour: 170.
func TestTrafficDuringUpdates(t *testing.T) {
	n := newFlowNode(t)
	d, _ := startKernel(t, n.ns, aggregator.Config{Rate: 10_000}, false)
	n.publish(t, d, dnsTo1, "10.96.0.1 . udp . 53 . 1 : 10.1.0.2 . 8080")
	done, updated := make(chan struct{}), make(chan error, 1)
	c, ctx := d.Dial(t, "tester"), aggregatortest.Context(t)
	go func() { updated <- keepUpdating(ctx, c, done) }()
	for i := range 300 {
		n.send(t, 20000+i, "10.96.0.1:53", true)
	}
	close(done)
	must(t, <-updated)
}

// keepUpdating changes everything around one front until done is closed.
func keepUpdating(ctx context.Context, c *client.Client, done <-chan struct{}) error {
	for i := 0; ; i++ {
		select {
		case <-done:
			if i < 10 {
				return fmt.Errorf("%d updates: too few to say anything", i)
			}
			return nil
		default:
		}
		f := fronts(dnsTo1, nodeTo1, fmt.Sprintf("10.96.1.%d . udp . 53 . 0 : 10.1.0.2 . 8080", i&255))
		if i%2 == 1 {
			f = fronts([]string{dnsTo1, dnsTo2}[i/2%2])
		}
		other := &weftv1.Chain{Name: fmt.Sprintf("other-%d", i%5), Rules: []*weftv1.Rule{{Text: "counter"}}}
		f.Tables[0].Chains = append(f.Tables[0].Chains, other)
		f.Tables[0].Chains[0].Rules = append(f.Tables[0].Chains[0].Rules, &weftv1.Rule{Text: "jump " + other.GetName()})
		if _, err := c.Apply(ctx, f); err != nil {
			return err
		}
	}
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
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	ns := nfttest.New(t)
	d, _ := startKernel(t, ns, aggregator.Config{}, false)
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
		_, err := c.Apply(ctx, f)
		rejection(t, err, weftv1.Violation_REASON_INVALID)
		if _, err := c.Apply(ctx, blocklist("after-"+f.GetName(), "10.0.0.1")); err != nil {
			t.Fatalf("the next update: %v", err)
		}
	}
	if text := ns.ListRuleset(t); strings.Contains(text, "xnnnnnnnn {") || !strings.Contains(text, "10.0.0.1") {
		t.Fatalf("ruleset:\n%s", text)
	}
}

// TestFamiliesApart has a kernel that refuses everything in ip6. An update is one
// transaction, so one fragment with both families keeps its last content in both;
// of two fragments, one for each family, the other is committed.
func TestFamiliesApart(t *testing.T) {
	k := &aggregatortest.Kernel{}
	k.Refuse = func(op kernel.Op) (syscall.Errno, string) {
		if kernel.TableOf(op).Family == nft.FamilyIP6 {
			return syscall.EOPNOTSUPP, "no ip6"
		}
		return 0, ""
	}
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k}})
	ctx := aggregatortest.Context(t)
	c := d.Dial(t, "tester")
	both := picks(1)
	_, err := c.Apply(ctx, both)
	rejection(t, err, weftv1.Violation_REASON_KERNEL)
	if got := k.Rules(demo, "pick-1"); got != nil {
		t.Fatalf("half of an update is committed: %q", got)
	}
	apart := func(i int) error {
		_, err := c.Apply(ctx, &weftv1.Fragment{Name: "picks-" + both.GetTables()[i].GetFamily(), Tables: both.GetTables()[i : i+1]})
		return err
	}
	must(t, apart(0))
	rejection(t, apart(1), weftv1.Violation_REASON_KERNEL)
	if got := k.Rules(demo, "pick-1"); len(got) != 1 {
		t.Fatalf("rules of ip: %q", got)
	}
}
