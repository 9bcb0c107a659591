package desired_test

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/adopt"
	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/aggregator/desired/planner"
	"github.com/weft-proxy/weft/aggregator/desired/views"
	"github.com/weft-proxy/weft/nft/kernel"
)

// world is a State, its kernel, and the model of both.
type world struct {
	t         *rapid.T
	s         *merge.State
	k         *fakeKernel
	m         model
	committed model
	before    string
}

func newWorld(t *rapid.T) *world {
	w := &world{t: t, s: merge.New(), k: newFakeKernel(), m: model{}, committed: model{}}
	w.s.FixedFlags = rapid.Bool().Draw(t, "fixed flags")
	w.before = stateText(w.s)
	return w
}

// apply applies an update and checks that it is accepted exactly when the
// result is a ruleset.
func (w *world) apply(u *desired.Update) {
	w.t.Helper()
	before := stateText(w.s)
	use(u, w.s.Scope())
	err := w.s.Apply(u)
	next, ok := w.m.apply(u)
	var why error
	if ok {
		_, why = next.merge()
	}
	if err != nil {
		same(w.t, "the state after a failed Apply", stateText(w.s), before)
		if ok && why == nil {
			w.t.Fatalf("Apply: %+v, want no error", err)
		}
		if !errors.Is(err, desired.ErrStale) && !errors.As(err, new(*desired.Rejection)) {
			w.t.Fatalf("Apply: unexpected kind of error %v", err)
		}
		return
	}
	if !ok || why != nil {
		w.t.Fatalf("Apply succeeded, want an error: %v", why)
	}
	w.m = next
}

func (w *world) commit() {
	w.t.Helper()
	p := planner.Make(w.s)
	w.checkOrigins(p)
	w.checkPurges(p)
	w.k.execute(w.t, p)
	planner.Accept(w.s)
	w.committed = w.m.clone()
	w.before = stateText(w.s)
	w.checkKernel()
	if p := planner.Make(w.s); !noOps(p) {
		w.t.Fatalf("plan after Accept:\n%s", planText(p))
	}
}

func (w *world) checkOrigins(p *desired.Plan) {
	w.t.Helper()
	for i, o := range p.Origin {
		if o < 0 || o >= w.s.Origin {
			w.t.Fatalf("op %d %s has origin %d of %d", i, opText(p.Ops[i]), o, w.s.Origin)
		}
	}
}

func (w *world) checkKernel() {
	w.t.Helper()
	want, err := w.m.merge()
	must(w.t, err)
	same(w.t, "kernel", w.k.text(), want)
}

func (w *world) rollback() {
	w.t.Helper()
	w.s.Rollback()
	w.m = w.committed.clone()
	same(w.t, "the state after Rollback", stateText(w.s), w.before)
}

// damage breaks the kernel as a foreign hand would.
func (w *world) damage() {
	ids := slices.SortedFunc(maps.Keys(w.k.tables), desired.CompareTables)
	if len(ids) == 0 {
		return
	}
	id := rapid.SampledFrom(ids).Draw(w.t, "damaged table")
	t := w.k.tables[id]
	switch rapid.IntRange(0, 4).Draw(w.t, "damage") {
	case 4:
		w.damageItems(t)
	case 0:
		delete(w.k.tables, id)
	case 1:
		for _, name := range sortedKeys(t.chains) {
			if c := t.chains[name]; len(c.rules) > 0 {
				i := rapid.IntRange(0, len(c.rules)-1).Draw(w.t, "damaged rule")
				foreign := fakeRule{handle: &kernel.Handle{}, n: w.k.handle + 1, rule: rule("foreign")}
				w.k.handle++
				c.rules[i] = foreign
			}
		}
	default:
		for _, name := range sortedKeys(t.sets) {
			s := t.sets[name]
			for _, eid := range sortedKeys(s.elements) {
				switch e := s.elements[eid]; rapid.IntRange(0, 3).Draw(w.t, "damaged element") {
				case 0:
					if e.Timeout == 0 {
						delete(s.elements, eid)
					}
				case 1:
					e.Comment = "broken"
					s.elements[eid] = e
				}
			}
		}
	}
}

// damageItems removes objects that nothing refers to, and makes others of some.
func (w *world) damageItems(t *fakeTable) {
	t.dormant = !t.dormant
	for _, id := range merge.SortedObjects(t.objects) {
		switch rapid.IntRange(0, 2).Draw(w.t, "damaged object") {
		case 0:
			_ = t.deleteObject(id) // it may be in use
		case 1:
			if id.Kind != merge.KindFlowtable {
				t.objects[id] = fakeItem{merge.ObjectDecl{Object: declared(describeObject(id), "rate 9/day")}, 0}
			}
		}
	}
}

func (w *world) repair() {
	w.t.Helper()
	p := planner.Diff(w.s, w.k.dump())
	w.k.execute(w.t, p)
	planner.Accept(w.s)
	w.committed = w.m.clone()
	w.before = stateText(w.s)
	w.checkKernel()
	if p := planner.Diff(w.s, w.k.dump()); !noOps(p) {
		w.t.Fatalf("second diff:\n%s", planText(p))
	}
	planner.Accept(w.s)
	w.before = stateText(w.s)
}

func TestHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		t.Repeat(map[string]func(*rapid.T){
			"apply":    func(t *rapid.T) { w.t = t; w.apply(drawUpdate(t)) },
			"apply2":   func(t *rapid.T) { w.t = t; w.apply(drawUpdate(t)) },
			"commit":   func(t *rapid.T) { w.t = t; w.commit() },
			"rollback": func(t *rapid.T) { w.t = t; w.rollback() },
			"repair":   func(t *rapid.T) { w.t = t; w.damage(); w.repair() },
			"":         func(t *rapid.T) { checkInvariants(t, w.s) },
		})
		w.t = t
		w.commit()
		w.rebuild()
	})
}

// contents returns every fragment as the snapshot that leads to it, first
// without what refers to others and then whole.
func (w *world) contents() (bare, whole []*desired.Update) {
	for _, st := range views.Fragments(w.s) {
		tables, _ := contentOf(w.s, st.Key)
		whole = append(whole, snapshot(st.Key, st.Priority, tables...))
		var stripped []desired.TableUpdate
		for _, tu := range tables {
			b := desired.TableUpdate{Table: tu.Table, Comment: tu.Comment, Dormant: tu.Dormant, PutObjects: tu.PutObjects, PutFlowtables: tu.PutFlowtables}
			for _, c := range tu.PutChains {
				b.PutChains = append(b.PutChains, desired.Chain{Decl: c.Decl})
			}
			for _, s := range tu.PutSets {
				b.PutSets = append(b.PutSets, desired.Set{Decl: s.Decl})
			}
			stripped = append(stripped, b)
		}
		bare = append(bare, snapshot(st.Key, st.Priority, stripped...))
	}
	return bare, whole
}

// rebuild checks that the same fragments in another order and by other ways
// are the same ruleset.
func (w *world) rebuild() {
	bare, whole := w.contents()
	other := newWorld(w.t)
	for _, u := range rapid.Permutation(bare).Draw(w.t, "bare order") {
		must(w.t, other.s.Apply(u))
	}
	for _, u := range rapid.Permutation(whole).Draw(w.t, "order") {
		must(w.t, other.s.Apply(u))
	}
	other.m = w.m.clone()
	other.commit()
}

func TestRestart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range rapid.IntRange(1, 12).Draw(t, "updates") {
			w.apply(drawUpdate(t))
		}
		w.commit()
		text, err := json.Marshal(views.Record(w.s))
		must(t, err)
		var record desired.Record
		must(t, json.Unmarshal(text, &record))
		_, whole := w.contents()
		w.s = merge.New()
		adopt.Dump(w.s, w.k.dump(), record)
		checkInvariants(t, w.s)
		if len(unclaimedOf(w.s)) > 0 {
			t.Fatalf("unclaimed: %v", unclaimedOf(w.s))
		}
		again, err := json.Marshal(views.Record(w.s))
		if err != nil || string(again) != string(text) {
			t.Fatalf("record after Adopt: %s, %v, want %s", again, err, text)
		}
		w.comeBack(rapid.Permutation(whole).Draw(t, "order"))
	})
}

// comeBack lets publishers return one after the other, some of them with
// something else, some never.
func (w *world) comeBack(whole []*desired.Update) {
	faithful := rapid.Bool().Draw(w.t, "faithful")
	changed := false
	for _, u := range whole {
		what := 0
		if !faithful {
			what = rapid.IntRange(0, 3).Draw(w.t, "return")
		}
		switch what {
		case 1:
			other := drawUpdate(w.t)
			other.Fragment, other.Snapshot = u.Fragment, true
			for i := range other.Tables {
				other.Tables[i].Elements, other.Tables[i].DeleteChains, other.Tables[i].DeleteSets = nil, nil, nil
			}
			use(other, w.s.Scope())
			if next, ok := w.m.apply(other); ok && w.s.Apply(other) == nil {
				w.m = next
				changed = true
				break
			}
			w.mustApply(u)
		case 2:
			next := w.m.clone()
			delete(next, u.Fragment)
			if dropAdopted(w.s, u.Fragment) {
				w.m = next
				changed = true
				break
			}
			w.mustApply(u)
		default:
			if changed {
				// Another's change can contradict what was.
				if next, _ := w.m.apply(u); w.s.Apply(u) == nil {
					w.m = next
				}
				break
			}
			w.mustApply(u)
		}
		checkInvariants(w.t, w.s)
		p := planner.Make(w.s)
		if !changed && !noOps(p) {
			w.t.Fatalf("plan when %s has come back as it was:\n%s", u.Fragment, planText(p))
		}
		w.k.execute(w.t, p)
		planner.Accept(w.s)
	}
	for _, st := range views.Fragments(w.s) {
		if st.Adopted {
			return
		}
	}
	if p := planner.Make(w.s); !noOps(p) {
		w.t.Fatalf("plan after all have come back:\n%s", planText(p))
	}
	w.checkKernel()
}

func (w *world) mustApply(u *desired.Update) {
	w.t.Helper()
	must(w.t, w.s.Apply(u))
}
