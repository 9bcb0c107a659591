package desired

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/nft/cost"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// checkVisits computes again, from scratch, how many rules packets visit.
func checkVisits(t tester, s *State) {
	t.Helper()
	s.evaluate()
	hooks := map[hook]int{}
	for _, tb := range s.tables {
		if hasAdopted(tb) {
			// It is not known which of the rules lead where.
			continue
		}
		known := map[*chain]int{}
		for _, o := range partsOf[*chain](tb) {
			if want := visitsFrom(o, known); o.visits != want {
				t.Errorf("%s: a packet visits %d rules, want %d", o.at(), o.visits, want)
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

// visitsFrom follows every way from a chain. known has the chains that were visited; those
// that are being visited are unbounded.
func visitsFrom(o *chain, known map[*chain]int) int {
	if n, ok := known[o]; ok {
		return n
	}
	known[o] = unbounded
	run, most := 0, 0
	for _, sh := range o.shares {
		for _, r := range sh.rules {
			run += cost.Visit(r.rule)
			jump := 0
			for _, c := range targetsOf(o.table, r) {
				if n := visitsFrom(c.chain, known); c.leaves {
					most = max(most, run+n)
				} else {
					jump = max(jump, n)
				}
			}
			run += jump
		}
	}
	known[o] = min(max(run, most), unbounded)
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
		for _, sh := range tb.set(c.Map).shares {
			for _, e := range sh.elements.all() {
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

func TestVisitsFollowJumps(t *testing.T) {
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
	want++
	path := strings.Join(e.Path.Chains(), " ")
	if e.Path.Visits != want || e.Path.ChainVisits != want || !strings.HasPrefix(path, "in l0 l1 l2") || e.Path.Hook != "input" {
		t.Errorf("a packet visits %d rules (%s at %s), want %d", e.Path.Visits, path, e.Path.Hook, want)
	}
	if e.HookChains != 1 || e.Hook != "input" {
		t.Errorf("%d base chains at %s", e.HookChains, e.Hook)
	}
	// The last chain has one rule more: each way to it gets longer.
	if err := h.ApplyWithin(patch(policy, in(ipWeft, regular("l14", rule("accept"), rule("drop")))), pathOf(&e), nil); err != nil {
		t.Fatal(err)
	}
	if n := 4782969; e.Path.Visits != want+n {
		t.Errorf("a packet visits %d rules after the patch, want %d", e.Path.Visits, want+n)
	}
	checkVisits(t, h.State)
	h.Rollback()
	checkVisits(t, h.State)
}

func TestVisitsFollowVerdictMaps(t *testing.T) {
	h := newHarness(t)
	var e Effect
	dispatch := snapshot(services, 0, in(ipWeft, verdictMap("to"), base("in", 0, rule("vmap", "@to"), rule("drop"))))
	apply := func(u *Update, visits int) {
		t.Helper()
		e = Effect{}
		if err := h.ApplyWithin(u, pathOf(&e), nil); err != nil {
			t.Fatal(err)
		}
		checkVisits(t, h.State)
		if e.Path.Visits != visits {
			t.Errorf("a packet visits %d rules, want %d", e.Path.Visits, visits)
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

func TestVisitsOfLoopsAreUnbounded(t *testing.T) {
	h := newHarness(t)
	loop := func(last ...string) TableUpdate {
		return in(ipWeft, base("in", 0, rule("x", "a")), regular("a", rule("x", "b")), regular("b", rule("x", last...)))
	}
	var e Effect
	if err := h.ApplyWithin(snapshot(policy, 0, loop("a")), pathOf(&e), nil); err != nil {
		t.Fatal(err)
	}
	if e.Path.Visits != unbounded {
		t.Errorf("a packet visits %d rules in a loop", e.Path.Visits)
	}
	if err := h.Apply(snapshot(policy, 0, loop())); err != nil {
		t.Fatal(err)
	}
	checkVisits(t, h.State)
}

// TestVisitsCostWhatChanges changes one of 2,000 chains that a map leads to.
func TestVisitsCostWhatChanges(t *testing.T) {
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
	if n := h.Visits(services.Publisher); n != 4 {
		t.Errorf("a packet visits %d rules, want 4", n)
	}
}
