package desired_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/adopt"
	"github.com/weft-proxy/weft/aggregator/desired/planner"
	"github.com/weft-proxy/weft/aggregator/desired/views"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// autoMergeSet is an interval set with auto-merge.
func autoMergeSet(elems ...nftset.Element) desired.Set {
	s := intervalSet("s", elems...)
	d := *s.Decl
	d.AutoMerge = true
	s.Decl = &d
	return s
}

// between is the element of the keys from first to last.
func between(first, last uint32) nftset.Element {
	key := func(n uint32) string { return string(binary.BigEndian.AppendUint32(nil, n)) }
	return nftset.Element{Key: key(first), KeyEnd: key(last)}
}

// spans are the kernel's elements of the set, in order.
func (h *harness) spans() []string {
	var all []string
	if t := h.k.tables[ipWeft]; t != nil && t.sets["s"] != nil {
		for _, id := range sortedKeys(t.sets["s"].elements) {
			e := t.sets["s"].elements[id]
			all = append(all, fmt.Sprintf("%d-%d%s", binary.BigEndian.Uint32([]byte(e.Key)), binary.BigEndian.Uint32([]byte(e.KeyEnd)), e.Comment))
		}
	}
	return all
}

// isUnion checks that the kernel has the union of what publishers state.
func (h *harness) isUnion(step int, stated map[desired.Key]map[nftset.Element]bool) {
	h.t.Helper()
	var all []nftset.Element
	for _, elems := range stated {
		for e := range elems {
			all = append(all, e)
		}
	}
	merged, err := autoMergeSet().Decl.Normalize(all)
	must(h.t, err)
	var want []string
	for _, e := range merged {
		want = append(want, fmt.Sprintf("%d-%d", binary.BigEndian.Uint32([]byte(e.Key)), binary.BigEndian.Uint32([]byte(e.KeyEnd))))
	}
	if got := h.spans(); !slices.Equal(got, want) {
		h.t.Fatalf("step %d: the kernel has %v, want %v", step, got, want)
	}
}

// TestAutoMergeIsTheUnion lets two publishers add and remove intervals in any order, be refused, leave and
// restart: the kernel has the union of what they state at every step.
func TestAutoMergeIsTheUnion(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	const keys = 300
	h := newHarness(t)
	stated := map[desired.Key]map[nftset.Element]bool{}
	publishers := []desired.Key{policy, extra}
	anySpan := func() nftset.Element {
		first := r.Uint32N(keys)
		last := min(first+r.Uint32N(1<<r.IntN(7)), keys-1)
		if r.IntN(20) == 0 {
			first, last = 0-last-1, 0-first-1 // at the end of all keys
		}
		return between(first, last)
	}
	for step := range 600 {
		key := publishers[r.IntN(2)]
		var add, remove []nftset.Element
		for range 1 + r.IntN(3) {
			add = append(add, anySpan())
		}
		for e := range stated[key] {
			if r.IntN(3) == 0 {
				remove = append(remove, e)
			}
		}
		change := in(ipWeft, desired.Elements{Set: "s", Add: add, Remove: remove})
		switch have := stated[key]; {
		case have == nil || r.IntN(10) == 0:
			stated[key] = map[nftset.Element]bool{}
			for _, e := range add {
				stated[key][e] = true
			}
			h.commit(snapshot(key, int32(r.IntN(3)), in(ipWeft, autoMergeSet(add...)))) //nolint:gosec // small
		case r.IntN(20) == 0:
			delete(stated, key)
			h.commit(snapshot(key, 0))
		case r.IntN(5) == 0:
			change.Elements = append(change.Elements, desired.Elements{Set: "missing"})
			if h.Apply(patch(key, change)) == nil {
				t.Fatal("a patch of a missing set is accepted")
			}
		case r.IntN(20) == 0:
			record := views.Record(h.State)
			adopt.Dump(h.State, h.k.dump(), record)
			for key, elems := range stated {
				var all []nftset.Element
				for e := range elems {
					all = append(all, e)
				}
				h.commit(snapshot(key, 0, in(ipWeft, autoMergeSet(all...))))
			}
		default:
			for _, e := range remove {
				delete(have, e)
			}
			for _, e := range add {
				have[e] = true
			}
			h.commit(patch(key, change))
		}
		h.isUnion(step, stated)
		if p := planner.Diff(h.State, h.k.dump()); !noOps(p) {
			t.Fatalf("step %d: repair of nothing: %s", step, planText(p))
		}
		planner.Accept(h.State)
	}
}

func TestAutoMergeSplits(t *testing.T) {
	h := newHarness(t)
	comment := func(e nftset.Element, text string) nftset.Element { e.Comment = text; return e }
	timed := between(100, 109)
	timed.Timeout = time.Hour
	is := func(what string, want ...string) {
		t.Helper()
		if got := h.spans(); !slices.Equal(got, want) {
			t.Errorf("%s: the kernel has %v, want %v", what, got, want)
		}
	}
	h.commit(snapshot(policy, 0, in(ipWeft, autoMergeSet(comment(between(0, 9), "a"), comment(between(0, 4), "b"), comment(between(10, 19), "c"), timed))))
	is("touching", "0-19a", "100-109")
	h.commit(snapshot(extra, 0, in(ipWeft, autoMergeSet(comment(between(5, 5), "d"), between(110, 119)))))
	is("inside of another's, and beside one with a timeout", "0-19a", "100-109", "110-119")
	owners, _ := views.OwnersOfElement(h.State, ipWeft, "s", between(0, 19))
	if len(owners) != 2 || owners[0].Fragment != extra && owners[1].Fragment != extra {
		t.Errorf("owners of a merged range: %+v", owners)
	}
	h.commit(patch(policy, in(ipWeft, desired.Elements{Set: "s", Remove: []nftset.Element{between(0, 9)}})))
	is("what another holds stays", "0-5b", "10-19c", "100-109", "110-119")
	h.commit(snapshot(policy, 0))
	is("the other alone", "5-5d", "110-119")
	// Repair: what another program has removed comes back, what it has added goes.
	delete(h.k.tables[ipWeft].sets["s"].elements, between(110, 119).Key+between(110, 119).KeyEnd)
	h.k.tables[ipWeft].sets["s"].elements[between(7, 8).Key+between(7, 8).KeyEnd] = between(7, 8)
	must(t, h.k.commit(planner.Diff(h.State, h.k.dump()).Ops))
	planner.Accept(h.State)
	is("repair", "5-5d", "110-119")
	// An earlier version did not merge.
	h.k.tables[ipWeft].sets["s"].elements[between(120, 120).Key+between(120, 120).KeyEnd] = between(120, 120)
	adopt.Dump(h.State, h.k.dump(), views.Record(h.State))
	must(t, h.k.commit(planner.Make(h.State).Ops))
	planner.Accept(h.State)
	is("merged after the restart", "5-5d", "110-120")
}

// TestAutoMergeCostsTheChange changes one of 60,000 elements.
func TestAutoMergeCostsTheChange(t *testing.T) {
	h := newHarness(t)
	var all []nftset.Element
	for i := range uint32(60_000) {
		all = append(all, between(3*i, 3*i))
	}
	h.commit(snapshot(policy, 0, in(ipWeft, autoMergeSet(all...))))
	for i, change := range []desired.Elements{{Set: "s", Add: []nftset.Element{between(90_001, 90_001)}}, {Set: "s", Remove: []nftset.Element{between(90_001, 90_001)}}} {
		before, start := h.Work().Keys, time.Now()
		planner.Make(h.State)
		must(t, h.Apply(patch(policy, in(ipWeft, change))))
		p := planner.Make(h.State)
		took := time.Since(start)
		if n := h.Work().Keys - before; n > 20 || len(p.Ops) == 0 {
			t.Errorf("change %d examines %d keys: %s", i, n, planText(p))
		}
		t.Logf("change %d takes %s: %s", i, took, planText(p))
		planner.Accept(h.State)
	}
}
