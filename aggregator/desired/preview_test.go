package desired_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/aggregator/desired/planner"
	"github.com/weft-proxy/weft/aggregator/desired/views"
	"github.com/weft-proxy/weft/nft/kernel"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// TestPreview previews random updates on random states: the ops equal those of planner.Make, the
// State has each rule and set in them, and Rollback leaves no trace.
func TestPreview(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range rapid.IntRange(1, 8).Draw(t, "updates") {
			w.apply(drawUpdate(t))
		}
		w.commit()
		var keys []desired.Key
		for range rapid.IntRange(1, 4).Draw(t, "planned") {
			u := drawUpdate(t)
			u.Snapshot = true
			keys = append(keys, u.Fragment)
			w.apply(u)
		}
		want := planText(planner.Make(w.s))
		p := planner.Preview(w.s, keys)
		same(t, "preview", planText(p.Plan), want)
		w.checkBefore(p)
		w.checkShadows(p, keys)
		w.rollback()
		checkInvariants(t, w.s)
		w.commit()
	})
}

func (w *world) checkBefore(p *desired.Preview) {
	w.t.Helper()
	for i, op := range p.Ops {
		b, ok := p.Before[i]
		known := true
		switch op.(type) {
		case kernel.DeleteRule:
			known = ok && b.Rule != nil
		case kernel.DeleteSet, kernel.FlushSet:
			known = ok && b.Set != nil
		}
		if !known {
			w.t.Fatalf("op %d %s: what was there before is not known", i, opText(op))
		}
	}
}

// checkShadows compares the shadows with the elements of all shares.
func (w *world) checkShadows(p *desired.Preview, keys []desired.Key) {
	w.t.Helper()
	text := func(s *desired.Shadow) string {
		return fmt.Sprintf("%s %s %q: %s %q hides %s %q", s.Table, s.Decl.Name, s.Element.Key, s.Winner, s.Element.Data, s.Hidden, s.HiddenElement.Data)
	}
	var want, got []string
	for _, tb := range w.s.Tables {
		for _, o := range partsOf[*merge.Set](tb) {
			for _, sh := range o.Shares {
				for id, e := range sh.Elements.All() {
					win := o.Winner(id)
					we, _ := win.Elements.Get(id)
					if we.Data == e.Data || !slices.Contains(keys, win.Fragment.Key) && !slices.Contains(keys, sh.Fragment.Key) {
						continue
					}
					want = append(want, text(&desired.Shadow{Table: tb.ID, Decl: o.Decl(), Winner: win.Fragment.Key, Hidden: sh.Fragment.Key, Element: we, HiddenElement: e}))
				}
			}
		}
	}
	for i := range p.Shadows {
		got = append(got, text(&p.Shadows[i]))
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		w.t.Fatalf("shadows:\n%q\nwant:\n%q", got, want)
	}
}

// TestMerged reads every table after random updates and compares with the
// kernel: rules with their handles, elements, and who owns them.
func TestMerged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range rapid.IntRange(1, 12).Draw(t, "updates") {
			w.apply(drawUpdate(t))
			if rapid.Bool().Draw(t, "commit") {
				w.commit()
			}
		}
		w.commit()
		tables := views.Tables(w.s, everything)
		if len(tables) != len(w.k.tables) {
			t.Fatalf("%d tables: the kernel has %d", len(tables), len(w.k.tables))
		}
		for i := range tables {
			w.checkMerged(&tables[i])
		}
	})
}

func (w *world) checkMerged(st *desired.TableStatus) {
	w.t.Helper()
	m, ok := views.Merged(w.s, st.Table, desired.DetailElements, everything, nil)
	if !ok || fmt.Sprint(m.Status) != fmt.Sprint(*st) {
		w.t.Fatalf("table %s has status %+v, and in the list %+v", st.Table, m, st)
	}
	var got, want []string
	counted := desired.TableStatus{}
	for _, c := range m.Chains {
		counted.Chains++
		for _, r := range c.Rules {
			counted.Rules++
			got = append(got, fmt.Sprintf("%s %d %s %s", c.Decl.Name, r.Handle, r.Owner, r.Rule.Text))
			if owner, ok := views.OwnerOfRule(w.s, st.Table, c.Decl.Name, r.Handle); !ok || owner.Fragment.String() != r.Owner || owner.Rule != r.Rule {
				w.t.Fatalf("owner of rule %d is %+v: want %s", r.Handle, owner, r.Owner)
			}
		}
	}
	for _, s := range m.Sets {
		counted.Sets++
		for e := range s.Elements.Sorted() {
			counted.Elements++
			got = append(got, s.Decl.Name+" "+elementText(&e))
			w.checkElementOwner(st, s.Decl, e)
		}
	}
	for name, c := range w.k.tables[st.Table].chains {
		for _, r := range c.rules {
			want = append(want, fmt.Sprintf("%s %d %s %s", name, r.n, r.owner, r.rule.Text))
		}
	}
	for name, s := range w.k.tables[st.Table].sets {
		for _, e := range s.elements {
			want = append(want, name+" "+elementText(&e))
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		w.t.Fatalf("table %s is\n%q\nthe kernel has\n%q", st.Table, got, want)
	}
	if counted.Chains != st.Chains || counted.Rules != st.Rules || counted.Sets != st.Sets || counted.Elements != st.Elements {
		w.t.Fatalf("table %s has status %+v: there are %+v", st.Table, st, counted)
	}
}

func (w *world) checkElementOwner(st *desired.TableStatus, d *nftset.Set, e nftset.Element) {
	w.t.Helper()
	owners, ok := views.OwnersOfElement(w.s, st.Table, d.Name, e)
	if ok && e.Expires() == 0 {
		// It has the time that is left.
		owners[0].Element.State = nftset.NewState(0, owners[0].Element.Stateful())
	}
	if !ok || owners[0].Element != e {
		w.t.Fatalf("first owner of %s in %s is %+v", elementText(&e), d.Name, owners)
	}
}
