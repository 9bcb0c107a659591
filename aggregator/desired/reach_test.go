package desired

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/cost"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// checkPrices computes again, from scratch, what packets pay.
func checkPrices(t tester, s *State) {
	t.Helper()
	s.evaluate()
	hooks := map[hook]int{}
	for _, tb := range s.tables {
		if hasAdopted(tb) {
			// It is not known which of the rules lead where.
			continue
		}
		known := map[*chain]price{}
		for _, o := range partsOf[*chain](tb) {
			if want := pricesFrom(o, known); o.price != want {
				t.Errorf("%s: a packet pays %v ns, want %v", o.at(), o.price, want)
			}
			if o.exists() {
				for _, h := range hooksOf(tb.id.Family, o.decl().Base) {
					hooks[h]++
					if _, ok := s.hooks[h][o]; !ok {
						t.Errorf("%s is not at its hook %v", o.at(), h)
					}
				}
			}
		}
	}
	for h, chains := range s.hooks {
		if len(chains) < hooks[h] {
			t.Errorf("hook %v has %d chains, want %d", h, len(chains), hooks[h])
		}
	}
}

func hasAdopted(tb *table) bool {
	return slices.ContainsFunc(partsOf[*chain](tb), func(o *chain) bool {
		return slices.ContainsFunc(o.shares, func(sh *chainShare) bool {
			return slices.ContainsFunc(sh.rules, func(r *slot) bool { return r.adopted })
		})
	})
}

// pricesFrom follows every way from a chain. known has the chains that were visited; those
// that are being visited are unbounded.
func pricesFrom(o *chain, known map[*chain]price) price {
	if n, ok := known[o]; ok {
		return n
	}
	known[o] = price{unbounded, unbounded}
	run, most, every, ends := 0, 0, 0, false
	for _, sh := range o.shares {
		for _, r := range sh.rules {
			v := cost.Packet(r.rule)
			run += v.Worst
			if !ends {
				every += v.Every
			}
			jump := 0
			for c := range cost.Calls(r.rule) {
				if c.Set == "" {
					if c.Every && !ends {
						every += pricesFrom(o.table.chain(c.Chain), known).every
					}
					continue
				}
				run += o.table.set(c.Set).lookupTime()
				if c.Every && !ends {
					every += o.table.set(c.Set).lookupTime()
				}
			}
			for _, c := range targetsOf(o.table, r) {
				if n := pricesFrom(c.chain, known).worst; c.leaves {
					most = max(most, run+n)
				} else {
					jump = max(jump, n)
				}
			}
			run += jump
			ends = ends || v.Ends
		}
	}
	known[o] = price{min(max(run, most), unbounded), min(every, unbounded)}
	if known[o].worst == unbounded {
		known[o] = price{unbounded, unbounded}
	}
	return known[o]
}

type target struct {
	chain  *chain
	leaves bool
}

func targetsOf(tb *table, r *slot) (all []target) {
	for c := range cost.Calls(r.rule) {
		if c.Chain != "" {
			all = append(all, target{tb.chain(c.Chain), c.Goto})
			continue
		}
		for _, sh := range tb.set(c.Set).shares {
			for _, e := range sh.elements.All() {
				if id := leadsTo(sh.decl, e.Data); id.Kind == kindChain {
					v, _ := nftset.ParseVerdictData(e.Data)
					all = append(all, target{tb.chain(id.Name), v.Code == -4})
				}
			}
		}
	}
	return all
}

// ladder is a table in which every chain of a level jumps k times to the next.
func ladder(k, depth int) []any {
	var parts []any
	for i := range depth {
		c := regular(fmt.Sprintf("l%d", i))
		for j := range k {
			c.Rules = append(c.Rules, rule(fmt.Sprintf("jump %d", j), fmt.Sprintf("l%d", i+1)))
		}
		parts = append(parts, c)
	}
	return append(parts, regular(fmt.Sprintf("l%d", depth), rule("accept")), base("in", 0, rule("jump", "l0")))
}

// pathOf is a limit that records the effect.
func pathOf(e *Effect) Limit {
	return func(_, _ Usage, effect Effect) error {
		*e = effect
		if e.Path.Chains != nil {
			names := e.Path.Chains()
			e.Path.Chains = func() []string { return names }
		}
		return nil
	}
}

// plain is the price of a rule without expressions.
var plain = cost.Packet(&compile.Rule{}).Worst

func TestPricesFollowJumps(t *testing.T) {
	h := newHarness(t)
	var e Effect
	if err := h.ApplyWithin(snapshot(policy, 0, in(ipWeft, ladder(3, 14)...)), pathOf(&e), nil); err != nil {
		t.Fatal(err)
	}
	// Level i has 3 rules and all of the next level three times.
	want := 1
	for range 14 {
		want = 3 + 3*want
	}
	want = plain * (want + 1)
	path := strings.Join(e.Path.Chains(), " ")
	if e.Path.Time != want || e.Path.ChainTime != want || !strings.HasPrefix(path, "in l0 l1 l2") || e.Path.Hook != "input" {
		t.Errorf("a packet pays %d ns (%s at %s), want %d", e.Path.Time, path, e.Path.Hook, want)
	}
	if e.HookChains != 1 || e.Hook != "input" {
		t.Errorf("%d base chains at %s", e.HookChains, e.Hook)
	}
	// The last chain has one rule more: each way to it gets longer.
	if err := h.ApplyWithin(patch(policy, in(ipWeft, regular("l14", rule("accept"), rule("drop")))), pathOf(&e), nil); err != nil {
		t.Fatal(err)
	}
	if n := 4782969 * plain; e.Path.Time != want+n {
		t.Errorf("a packet pays %d ns after the patch, want %d", e.Path.Time, want+n)
	}
	checkPrices(t, h.State)
	h.Rollback()
	checkPrices(t, h.State)
}

func TestPricesFollowVerdictMaps(t *testing.T) {
	h := newHarness(t)
	var e Effect
	dispatch := snapshot(services, 0, in(ipWeft, verdictMap("to"), base("in", 0, rule("vmap", "@to"), rule("drop"))))
	apply := func(u *Update, rules int) {
		t.Helper()
		e = Effect{}
		if err := h.ApplyWithin(u, pathOf(&e), nil); err != nil {
			t.Fatal(err)
		}
		checkPrices(t, h.State)
		lookup := 0
		if rules > 0 {
			lookup = h.tables[ipWeft].set("to").lookup
		}
		if want := rules*plain + lookup; e.Path.Time != want {
			t.Errorf("a packet pays %d ns, want %d", e.Path.Time, want)
		}
	}
	apply(dispatch, 2)
	one := regular("one", rule("a"), rule("b"), rule("c"))
	two := regular("two", rule("a"), rule("b"), rule("c"), rule("d"))
	apply(patch(services, in(ipWeft, one, two, Elements{Set: "to", Add: []nftset.Element{leads(dest("10.0.0.1", 6, 80), "one")}})), 4)
	apply(patch(services, in(ipWeft, Elements{Set: "to", Add: []nftset.Element{leads(dest("10.0.0.2", 6, 80), "two")}})), 5)
	// A way that gets cheaper is not reported.
	apply(patch(services, in(ipWeft, Elements{Set: "to", Remove: []nftset.Element{leads(dest("10.0.0.2", 6, 80), "two")}})), 0)
	apply(patch(services, in(ipWeft, Elements{Set: "to", Add: []nftset.Element{leads(dest("10.0.0.3", 6, 80), "two")}})), 5)
}

func TestPricesOfLoopsAreUnbounded(t *testing.T) {
	h := newHarness(t)
	loop := func(last ...string) TableUpdate {
		return in(ipWeft, base("in", 0, rule("x", "a")), regular("a", rule("x", "b")), regular("b", rule("x", last...)))
	}
	var e Effect
	if err := h.ApplyWithin(snapshot(policy, 0, loop("a")), pathOf(&e), nil); err != nil {
		t.Fatal(err)
	}
	if e.Path.Time != unbounded {
		t.Errorf("a packet pays %d ns in a loop", e.Path.Time)
	}
	if err := h.Apply(snapshot(policy, 0, loop())); err != nil {
		t.Fatal(err)
	}
	checkPrices(t, h.State)
}

// TestPricesCostWhatChanges changes one of 2,000 chains that a map leads to.
func TestPricesCostWhatChanges(t *testing.T) {
	h := newHarness(t)
	parts := []any{base("in", 0, rule("vmap", "@to"))}
	m := verdictMap("to")
	for i := range 2000 {
		name := fmt.Sprintf("svc-%d", i)
		parts = append(parts, regular(name, rule("accept")))
		m.Elements = append(m.Elements, leads(dest(fmt.Sprintf("10.0.%d.%d", i/250, i%250), 6, 80), name))
	}
	h.commit(snapshot(services, 0, in(ipWeft, append(parts, m)...)))
	before := h.Work()
	h.commit(patch(services, in(ipWeft, regular("svc-7", rule("a"), rule("b"), rule("c")))))
	if n := h.Work().Objects - before.Objects; n > 10 {
		t.Errorf("the change of one chain looks at %d objects", n)
	}
	if n, _ := h.PacketTime(services.Publisher); n != 4*plain+h.tables[ipWeft].set("to").lookup {
		t.Errorf("a packet pays %d ns", n)
	}
}
