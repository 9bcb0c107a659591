package desired_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/aggregator/desired/planner"
	"github.com/weft-proxy/weft/aggregator/desired/views"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/kernel"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// values are what the rules of a model have packets write into a map, and whether
// some fragment calls it an affinity map; ok is false where it is not there.
func (m model) values(id nft.TableID, name string) (values map[merge.Value]bool, affinity, ok bool) {
	values = map[merge.Value]bool{}
	for _, f := range m {
		t, has := f.tables[id]
		if !has {
			continue
		}
		if s, has := t.sets[name]; has {
			ok, affinity = true, affinity || s.affinity
		}
		for _, c := range t.chains {
			for _, r := range c.Rules {
				for _, w := range r.Writes {
					if w.Map == name {
						values[merge.Value{Data: w.Data, Any: w.Any}] = true
					}
				}
			}
		}
	}
	return values, affinity, ok
}

// checkPurges compares the maps of a plan with those that lost a value by the
// models of before and after.
func (w *world) checkPurges(p *desired.Plan) {
	w.t.Helper()
	for _, id := range []nft.TableID{ipWeft, ipDeny} {
		before, was, had := w.committed.values(id, "d0")
		after, is, has := w.m.values(id, "d0")
		lost := !was
		for v := range before {
			lost = lost || !after[v]
		}
		lost = lost && (!after[merge.Value{Any: true}] || !was)
		// A table that is made anew has no entries.
		remade := slices.ContainsFunc(p.Ops, func(op kernel.Op) bool { d, ok := op.(kernel.DeleteTable); return ok && d.Table == id })
		want := had && has && is && lost && !remade
		got := slices.ContainsFunc(p.Purges, func(p desired.Purge) bool { return p.Table == id && p.Decl.Name == "d0" })
		if got != want {
			w.t.Fatalf("table %s: purge %t, want %t: values %v (affinity %t) become %v (affinity %t)", id, got, want, before, was, after, is)
		}
	}
}

func wantPurges(t *testing.T, when string, got []desired.Purge, want ...string) {
	t.Helper()
	var names []string
	for _, p := range got {
		names = append(names, p.Decl.Name)
	}
	if fmt.Sprint(names) != fmt.Sprint(want) {
		t.Errorf("purges %s: %v, want %v", when, names, want)
	}
}

// byPacket puts an entry into a map of the kernel.
func (h *harness) byPacket(name string, e nftset.Element) {
	h.k.tables[ipWeft].sets[name].elements[e.Key] = e
}

func keys(elems []nftset.Element) string {
	var out []string
	for _, e := range elems {
		out = append(out, fmt.Sprintf("%x", e.Key))
	}
	slices.Sort(out)
	return fmt.Sprint(out)
}

// TestLeftovers judges entries one by one.
func TestLeftovers(t *testing.T) {
	h := newHarness(t)
	stated := mapped("10.0.0.9", "10.1.0.9")
	publish := func(m desired.Set, rules ...*compile.Rule) *desired.Plan {
		return h.commit(snapshot(services, 0, in(ipWeft, m, regular("c", rules...))))
	}
	publish(affinityMap("m", stated), remember("m", "10.1.0.1"))
	entries := []nftset.Element{mapped("10.0.0.1", "10.1.0.1"), mapped("10.0.0.2", "10.1.0.2"), stated}
	look := func() string {
		return keys(planner.Leftovers(h.State, desired.Purge{Table: ipWeft, Decl: affinityMap("m").Decl}, entries))
	}
	if got, want := look(), keys(entries[1:2]); got != want {
		t.Errorf("leftovers %s, want %s: what no rule makes and no fragment states", got, want)
	}
	publish(affinityMap("m"), remember("m", ""))
	same(t, "leftovers while packets decide", look(), "[]")
	plain := affinityMap("m")
	plain.Affinity = false
	publish(plain)
	same(t, "leftovers of a map that is not an affinity map", look(), "[]")
	wantPurges(t, "when it becomes one", publish(affinityMap("m")).Purges, "m")
	if got, want := look(), keys(entries); got != want {
		t.Errorf("leftovers %s, want %s", got, want)
	}
	for _, p := range []desired.Purge{{Table: ipDeny, Decl: plain.Decl}, {Table: ipWeft, Decl: addrMap("gone").Decl}, {Table: ipWeft, Decl: addrMap("m").Decl}} {
		if got := planner.Leftovers(h.State, p, entries); got != nil {
			t.Errorf("leftovers %v of what is not there", got)
		}
	}
}

// TestAffinityOverARestart adopts a kernel in which packets have made entries. No
// plan deletes any of them; what no rule makes is found in the dump,
// whatever the record says of rules.
//
// Behaviour: 80, 81.
func TestAffinityOverARestart(t *testing.T) {
	h := newHarness(t)
	live, dead := mapped("10.0.0.1", "10.1.0.1"), mapped("10.0.0.2", "10.1.0.2")
	both := snapshot(services, 0, in(ipWeft, affinityMap("m"), regular("c", remember("m", "10.1.0.1"), remember("m", "10.1.0.2"))))
	one := snapshot(services, 0, in(ipWeft, affinityMap("m"), regular("c", remember("m", "10.1.0.1"))))
	h.commit(both)
	h.byPacket("m", live)
	h.byPacket("m", dead)
	wantPurges(t, "while all is as it was", planner.Unpurged(h.State, h.k.dump()))

	h.restart(views.Record(h.State))
	wantPurges(t, "after a restart", planner.Unpurged(h.State, h.k.dump()))
	empty(t, "when the publisher is back", h.commit(both))
	wantPurges(t, "when the publisher is back", planner.Unpurged(h.State, h.k.dump()))

	// The publisher comes back with one endpoint less.
	h.restart(views.Record(h.State))
	wantPurges(t, "of the rule that goes", h.commit(one).Purges, "m")

	// The process died between that commit and the removal.
	h.restart(views.Record(h.State))
	dump := h.k.dump()
	wantPurges(t, "after a crash", planner.Unpurged(h.State, dump), "m")
	if got, want := keys(planner.Leftovers(h.State, planner.Unpurged(h.State, dump)[0], dump[0].Sets[0].Elements)), keys([]nftset.Element{dead}); got != want {
		t.Errorf("leftovers %s, want %s", got, want)
	}

	// Without a record it is not known to be an affinity map until a fragment says so.
	h.restart(desired.Record{})
	wantPurges(t, "without a record", planner.Unpurged(h.State, h.k.dump()))
	wantPurges(t, "once the publisher has said so", h.commit(one).Purges, "m")
	empty(t, "of a diff", planner.Diff(h.State, h.k.dump()))
	planner.Accept(h.State)
	same(t, "entries, as plans do not delete what packets made", len(h.k.tables[ipWeft].sets["m"].elements), 2)
}

// TestAffinityOfOtherMaps refuses to purge what packets do not fill.
func TestAffinityOfOtherMaps(t *testing.T) {
	for _, s := range []desired.Set{addrMap("m"), withFlags(addrMap("m"), nftset.FlagTimeout), withFlags(addrSet("m"), nftset.FlagEval), verdictMap("m")} {
		s.Affinity = true
		newHarness(t).reject(snapshot(services, 0, in(ipWeft, s)), desired.ReasonInvalid, "table ip weft map m", "dynamic")
	}
}

// writeKeys makes a rule that has packets write any key of a set into a map.
func writeKeys(set, name string) *compile.Rule {
	r := rule("ip daddr @"+set+" update @"+name, "@"+set, "@"+name)
	r.Writes = []compile.Write{{Map: name, Any: true, In: set}}
	return r
}

// TestPurgeOfKeys has a rule write the keys of a set into a map. Only an update that removes a key
// from the set makes a purge.
//
// Behaviour: 81.
func TestPurgeOfKeys(t *testing.T) {
	const a, b, c = "10.1.0.1", "10.1.0.2", "10.1.0.3"
	key := func(text string) nftset.Element { return nftset.Element{Key: addr(text)} }
	h := newHarness(t)
	ours := func(keys ...string) *desired.Update {
		var elems []nftset.Element
		for _, k := range keys {
			elems = append(elems, key(k))
		}
		return snapshot(services, 0, in(ipWeft, affinityMap("m"), addrSet("keys", elems...), addrMap("other"), regular("c", writeKeys("keys", "m"))))
	}
	entries := []nftset.Element{mapped("10.0.0.1", a), mapped("10.0.0.2", b), mapped("10.0.0.3", c)}
	wantLeft := func(when string, want ...nftset.Element) {
		t.Helper()
		same(t, "leftovers "+when, keys(planner.Leftovers(h.State, desired.Purge{Table: ipWeft, Decl: affinityMap("m").Decl}, entries)), keys(want))
	}
	wantPurges(t, "of a new map", h.commit(ours(a, b)).Purges)
	for i := range entries {
		h.byPacket("m", entries[i])
	}
	wantLeft("of two keys", entries[2])
	wantPurges(t, "when a key is added", h.commit(ours(a, b, c)).Purges)
	wantLeft("of three keys")
	wantPurges(t, "when one leaves", h.commit(ours(b, c)).Purges, "m")
	wantLeft("when one leaves", entries[0])
	wantPurges(t, "when another fragment adds it", h.commit(snapshot(policy, 0, in(ipWeft, addrSet("keys", key(a), key(b))))).Purges)
	wantLeft("when another fragment has it")
	wantPurges(t, "when one of two fragments leaves a key", h.commit(ours(c)).Purges)
	wantPurges(t, "when the other does", h.commit(snapshot(policy, 0)).Purges, "m")
	wantLeft("when all but one left", entries[:2]...)
	h.apply(ours())
	wantPurges(t, "before a rollback", planner.Make(h.State).Purges, "m")
	h.Rollback()
	wantPurges(t, "after a rollback", h.commit(ours(c, a)).Purges)

	// The process dies between a commit and the removal.
	h.commit(ours(c))
	h.restart(views.Record(h.State))
	wantPurges(t, "after a crash", planner.Unpurged(h.State, h.k.dump()), "m")
	empty(t, "when the publisher is back", h.commit(ours(c)))
	wantLeft("when the publisher is back", entries[:2]...)

	// A rule that writes a value itself, from before.
	wantPurges(t, "when the rule goes", h.commit(snapshot(services, 0, in(ipWeft, affinityMap("m"), regular("c", remember("m", a))))).Purges, "m")
	wantLeft("of a rule with a value", entries[1:]...)
	wantPurges(t, "when it is back", h.commit(ours(a, b)).Purges, "m")
	wantLeft("when it is back", entries[2])

	// What a set has is not known if its elements are intervals, or packets fill it.
	interval := intervalSet("keys", key(a))
	wantPurges(t, "of intervals", h.commit(snapshot(services, 0, in(ipWeft, affinityMap("m"), interval, regular("c", writeKeys("keys", "m"))))).Purges)
	wantLeft("of intervals")
}
