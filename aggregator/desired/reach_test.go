package desired_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/cost"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// checkPrices computes again, from scratch, what packets pay.
func checkPrices(t tester, s *merge.State) {
	t.Helper()
	s.Paths.Evaluate()
	hooks := map[merge.Hook]int{}
	for _, tb := range s.Tables {
		if hasAdopted(tb) {
			// It is not known which of the rules lead where.
			continue
		}
		known := map[*merge.Chain]merge.Price{}
		for _, o := range partsOf[*merge.Chain](tb) {
			if want := pricesFrom(o, known); o.Price != want {
				t.Errorf("%s: a packet pays %v ns, want %v", o.At(), o.Price, want)
			}
			if o.Exists() {
				for _, h := range merge.HooksOf(tb.ID.Family, o.Decl().Base) {
					hooks[h]++
					if _, ok := s.Paths.Hooks[h][o]; !ok {
						t.Errorf("%s is not at its hook %v", o.At(), h)
					}
				}
			}
		}
	}
	for h, chains := range s.Paths.Hooks {
		if len(chains) < hooks[h] {
			t.Errorf("hook %v has %d chains, want %d", h, len(chains), hooks[h])
		}
	}
}

func hasAdopted(tb *merge.Table) bool {
	return slices.ContainsFunc(partsOf[*merge.Chain](tb), func(o *merge.Chain) bool {
		return slices.ContainsFunc(o.Shares, func(sh *merge.ChainShare) bool {
			return slices.ContainsFunc(sh.Rules, func(r *merge.Slot) bool { return r.Adopted })
		})
	})
}

// pricesFrom follows every way from a chain. known has the chains that were visited; those
// that are being visited are unbounded.
func pricesFrom(o *merge.Chain, known map[*merge.Chain]merge.Price) merge.Price {
	if n, ok := known[o]; ok {
		return n
	}
	known[o] = merge.Price{Worst: merge.Unbounded, Every: merge.Unbounded}
	run, most, every, ends := 0, 0, 0, false
	for _, sh := range o.Shares {
		for _, r := range sh.Rules {
			v := cost.Packet(r.Rule)
			run += v.Worst
			if !ends {
				every += v.Every
			}
			jump := 0
			for c := range cost.Calls(r.Rule) {
				if c.Set == "" {
					if c.Every && !ends {
						every += pricesFrom(o.Table.Chain(c.Chain), known).Every
					}
					continue
				}
				run += o.Table.Set(c.Set).LookupTime()
				if c.Every && !ends {
					every += o.Table.Set(c.Set).LookupTime()
				}
			}
			for _, c := range targetsOf(o.Table, r) {
				if n := pricesFrom(c.chain, known).Worst; c.leaves {
					most = max(most, run+n)
				} else {
					jump = max(jump, n)
				}
			}
			run += jump
			ends = ends || v.Ends
		}
	}
	known[o] = merge.Price{Worst: min(max(run, most), merge.Unbounded), Every: min(every, merge.Unbounded)}
	if known[o].Worst == merge.Unbounded {
		known[o] = merge.Price{Worst: merge.Unbounded, Every: merge.Unbounded}
	}
	return known[o]
}

type target struct {
	chain  *merge.Chain
	leaves bool
}

func targetsOf(tb *merge.Table, r *merge.Slot) (all []target) {
	for c := range cost.Calls(r.Rule) {
		if c.Chain != "" {
			all = append(all, target{tb.Chain(c.Chain), c.Goto})
			continue
		}
		for _, sh := range tb.Set(c.Set).Shares {
			for _, e := range sh.Elements.All() {
				if id := merge.LeadsTo(sh.Decl, e.Data); id.Kind == merge.KindChain {
					v, _ := nftset.ParseVerdictData(e.Data)
					all = append(all, target{tb.Chain(id.Name), v.Code == -4})
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
func pathOf(e *desired.Effect) desired.Limit {
	return func(_, _ desired.Usage, effect desired.Effect) error {
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
	var e desired.Effect
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
	var e desired.Effect
	dispatch := snapshot(services, 0, in(ipWeft, verdictMap("to"), base("in", 0, rule("vmap", "@to"), rule("drop"))))
	apply := func(u *desired.Update, rules int) {
		t.Helper()
		e = desired.Effect{}
		if err := h.ApplyWithin(u, pathOf(&e), nil); err != nil {
			t.Fatal(err)
		}
		checkPrices(t, h.State)
		lookup := 0
		if rules > 0 {
			lookup = h.Tables[ipWeft].Set("to").Lookup
		}
		if want := rules*plain + lookup; e.Path.Time != want {
			t.Errorf("a packet pays %d ns, want %d", e.Path.Time, want)
		}
	}
	apply(dispatch, 2)
	one := regular("one", rule("a"), rule("b"), rule("c"))
	two := regular("two", rule("a"), rule("b"), rule("c"), rule("d"))
	apply(patch(services, in(ipWeft, one, two, desired.Elements{Set: "to", Add: []nftset.Element{leads(dest("10.0.0.1", 6, 80), "one")}})), 4)
	apply(patch(services, in(ipWeft, desired.Elements{Set: "to", Add: []nftset.Element{leads(dest("10.0.0.2", 6, 80), "two")}})), 5)
	// A way that gets cheaper is not reported.
	apply(patch(services, in(ipWeft, desired.Elements{Set: "to", Remove: []nftset.Element{leads(dest("10.0.0.2", 6, 80), "two")}})), 0)
	apply(patch(services, in(ipWeft, desired.Elements{Set: "to", Add: []nftset.Element{leads(dest("10.0.0.3", 6, 80), "two")}})), 5)
}

func TestPricesOfLoopsAreUnbounded(t *testing.T) {
	h := newHarness(t)
	loop := func(last ...string) desired.TableUpdate {
		return in(ipWeft, base("in", 0, rule("x", "a")), regular("a", rule("x", "b")), regular("b", rule("x", last...)))
	}
	var e desired.Effect
	if err := h.ApplyWithin(snapshot(policy, 0, loop("a")), pathOf(&e), nil); err != nil {
		t.Fatal(err)
	}
	if e.Path.Time != merge.Unbounded {
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
	if n, _ := h.Paths.PacketTime(services.Publisher); n != 4*plain+h.Tables[ipWeft].Set("to").Lookup {
		t.Errorf("a packet pays %d ns", n)
	}
}
