package desired_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/aggregator/desired/views"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/cost"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// checkUsage recomputes what every publisher holds.
func checkUsage(t tester, s *merge.State) {
	t.Helper()
	want := map[string]desired.Usage{}
	for key, f := range s.Fragments {
		u, shadowed := want[key.Publisher], 0
		before := u
		u.Fragments++
		for _, h := range f.Tables {
			for _, sh := range sharesOf[*merge.ObjectShare](h) {
				u.Objects++
				u.Memory += sh.Decl.Usage().Memory
				u.Bytes += len(sh.Decl.ID().Name)
				if o := sh.Decl.Object; o != nil {
					u.Bytes += len(merge.Definition(o)) + len(o.Comment)
				} else {
					u.Bytes += len(strings.Join(sh.Decl.Flowtable.Devices, ""))
				}
			}
			for _, sh := range sharesOf[*merge.ChainShare](h) {
				u.Chains++
				u.BaseChains += merge.Count(sh.Decl.Base != nil)
				u.Memory += cost.Chain(sh.Decl.Base != nil)
				u.Bytes += len(sh.Decl.Name) + len(sh.Decl.Comment)
				for _, r := range sh.Rules {
					u.Rules++
					if !r.Adopted {
						u.Bytes += len(r.Rule.Text) + len(r.Rule.Comment)
						u.Memory += cost.Rule(r.Rule)
						for _, a := range r.Rule.Anonymous {
							u.Anonymous += len(a.Elements)
						}
					}
				}
			}
			for _, sh := range sharesOf[*merge.SetShare](h) {
				u.Sets++
				u.Elements += sh.Elements.Len()
				u.Bytes += len(sh.Decl.Name) + len(sh.Decl.Comment)
				var content cost.Content
				for _, e := range sh.Elements.All() {
					content.Add(sh.Decl, &e, 1)
					u.Bytes += len(e.Key) + len(e.KeyEnd) + len(e.Data) + len(e.Comment) + len(e.State)
				}
				u.Memory += content.Memory(sh.Decl)
				shadowed += sh.Shadowed
			}
		}
		if st := views.StatusOf(f); st.Rules != u.Rules-before.Rules || st.Elements != u.Elements-before.Elements || st.Shadowed != shadowed {
			t.Errorf("fragment %s has status %+v, want %d rules, %d elements, %d shadowed", f, st, u.Rules-before.Rules, u.Elements-before.Elements, shadowed)
		}
		want[key.Publisher] = u
	}
	if !maps.Equal(s.Held, want) {
		t.Errorf("usage %v, want %v", s.Held, want)
	}
}

// most is a limit of the number of elements.
func most(elements int) desired.Limit {
	return func(before, after desired.Usage, _ desired.Effect) error {
		if after.Elements <= elements || after.Elements <= before.Elements {
			return nil
		}
		return fmt.Errorf("%d elements", after.Elements)
	}
}

func TestApplyWithinCountsAllFragmentsOfAPublisher(t *testing.T) {
	h := newHarness(t)
	other := desired.Key{policy.Publisher, "other"}
	h.commit(
		snapshot(policy, 0, in(ipWeft, addrSet("a", member("10.0.0.1"), member("10.0.0.2")), regular("c", rule("accept")))),
		snapshot(desired.Key{"somebody", "else"}, 0, in(ipWeft, addrSet("b", member("10.0.0.9")))))
	if got, want := h.Usage(policy.Publisher), (desired.Usage{Memory: h.Usage(policy.Publisher).Memory, Fragments: 1, Chains: 1, Rules: 1, Sets: 1, Elements: 2, Bytes: len("a") + 2*4 + len("c") + len("accept")}); got != want {
		t.Fatalf("usage %+v, want %+v", got, want)
	}
	before, state := h.Usage(policy.Publisher), stateText(h.State)
	err := h.ApplyWithin(snapshot(other, 0, in(ipWeft, addrSet("o", member("10.0.0.3"), member("10.0.0.4")))), most(3), nil)
	if err == nil || err.Error() != "4 elements" {
		t.Fatalf("over the limit: %v", err)
	}
	if got := h.Usage(policy.Publisher); got != before || stateText(h.State) != state {
		t.Fatalf("a refused update left usage %+v, want %+v", got, before)
	}
	must(t, h.ApplyWithin(snapshot(other, 0, in(ipWeft, addrSet("o", member("10.0.0.3")))), most(3), nil))
	// Content over a lowered limit may stay, and shrink.
	less := patch(policy, in(ipWeft, desired.Elements{Set: "a", Remove: []nftset.Element{member("10.0.0.1")}}))
	must(t, h.ApplyWithin(less, most(1), nil))
	// Rollback after a refusal of the kernel restores the usage.
	h.Rollback()
	same(t, "usage after rollback", h.Usage(policy.Publisher), before)
	h.commit(snapshot(policy, 0))
	same(t, "usage of nothing", h.Usage(policy.Publisher), (desired.Usage{}))
}

// TestPatchesReachWhatASnapshotCanSend bounds a fragment however it grows.
func TestPatchesReachWhatASnapshotCanSend(t *testing.T) {
	h := newHarness(t)
	tables := func(from, to int) (out []desired.TableUpdate) {
		for i := from; i < to; i++ {
			out = append(out, in(nft.TableID{Family: nft.FamilyIP, Name: fmt.Sprintf("t%d", i)}, regular("c")))
		}
		return out
	}
	h.commit(snapshot(policy, 0, tables(0, desired.MaxTables)...))
	before := stateText(h.State)
	h.reject(patch(policy, tables(desired.MaxTables, desired.MaxTables+1)...), desired.ReasonLimit, "", "65 tables", "at most 64")
	if stateText(h.State) != before {
		t.Error("a refused patch changed the state")
	}
	h.commit(snapshot(policy, 0, tables(1, desired.MaxTables+1)...))
}

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
	must(t, h.ApplyWithin(snapshot(policy, 0, in(ipWeft, ladder(3, 14)...)), pathOf(&e), nil))
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
	must(t, h.ApplyWithin(patch(policy, in(ipWeft, regular("l14", rule("accept"), rule("drop")))), pathOf(&e), nil))
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
		must(t, h.ApplyWithin(u, pathOf(&e), nil))
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
	must(t, h.ApplyWithin(snapshot(policy, 0, loop("a")), pathOf(&e), nil))
	if e.Path.Time != merge.Unbounded {
		t.Errorf("a packet pays %d ns in a loop", e.Path.Time)
	}
	must(t, h.Apply(snapshot(policy, 0, loop())))
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
