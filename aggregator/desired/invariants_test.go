package desired_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/aggregator/desired/packed"
	"github.com/weft-proxy/weft/aggregator/desired/views"
	"github.com/weft-proxy/weft/nft"
)

// tester is what a check needs of *testing.T or *rapid.T.
type tester interface {
	Helper()
	Errorf(format string, args ...any)
	Fatal(args ...any)
}

func must(t tester, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// same compares a value with what it should be.
func same[T comparable](t tester, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v\nwant: %v", what, got, want)
	}
}

// checkInvariants recomputes everything that the state counts incrementally.
func checkInvariants(t tester, s *merge.State) {
	t.Helper()
	chainRefs, setRefs := map[objectName]int{}, map[objectName]int{}
	itemRefs := map[nft.TableID]map[merge.ObjectID]int{}
	writes := map[objectName]map[merge.Value]int{}
	for id, tb := range s.Tables {
		itemRefs[id] = map[merge.ObjectID]int{}
		for _, o := range partsOf[*merge.Chain](tb) {
			for _, sh := range o.Shares {
				for _, ref := range sh.Refs {
					switch ref.Kind {
					case merge.KindChain:
						chainRefs[objectName{id, ref.Name}]++
					case merge.KindSet:
						setRefs[objectName{id, ref.Name}]++
					default:
						itemRefs[id][ref]++
					}
				}
				for _, r := range sh.Rules {
					for _, w := range r.Rule.Writes {
						if writes[objectName{id, w.Map}] == nil {
							writes[objectName{id, w.Map}] = map[merge.Value]int{}
						}
						v := merge.Value{Data: w.Data, Any: w.Any}
						if w.In != "" {
							v.In, v.Any = tb.Parts[merge.SetID(w.In)].(*merge.Set), false
						}
						writes[objectName{id, w.Map}][v]++
					}
				}
			}
		}
		for _, o := range partsOf[*merge.Set](tb) {
			for _, sh := range o.Shares {
				for _, e := range sh.Elements.All() {
					switch to := merge.LeadsTo(sh.Decl, e.Data); {
					case to.Name == "":
					case to.Kind == merge.KindChain:
						chainRefs[objectName{id, to.Name}]++
					default:
						itemRefs[id][to]++
					}
				}
			}
		}
	}
	for id, tb := range s.Tables {
		checkObjects(t, tb, itemRefs[id])
		for _, o := range partsOf[*merge.Chain](tb) {
			name := o.ID.Name
			if want := chainRefs[objectName{id, name}]; o.Refs != want {
				t.Errorf("table %s chain %s has %d references, want %d", id, name, o.Refs, want)
			}
			if o.Refs > 0 && !o.Exists() {
				t.Errorf("table %s chain %s: dangling", id, name)
			}
			sorted := slices.IsSortedFunc(o.Shares, func(a, b *merge.ChainShare) int { return order(a.Fragment, b.Fragment) })
			for _, sh := range o.Shares {
				if h := sh.Fragment.Tables[id]; h == nil || h.Shares[o.ID] != sh || !merge.EqualChain(sh.Decl, o.Decl()) && !sh.Fragment.Unclaimed {
					t.Errorf("table %s chain %s: share of %s is not held or disagrees", id, name, sh.Fragment)
				}
			}
			if !sorted {
				t.Errorf("table %s chain %s: shares are not in order", id, name)
			}
		}
		for _, o := range partsOf[*merge.Set](tb) {
			name := o.ID.Name
			if want := setRefs[objectName{id, name}]; o.Refs != want {
				t.Errorf("table %s set %s has %d references, want %d", id, name, o.Refs, want)
			}
			if o.Refs > 0 && !o.Exists() {
				t.Errorf("table %s set %s: dangling", id, name)
			}
			if want := writes[objectName{id, name}]; !maps.Equal(want, o.Written.Rules) {
				t.Errorf("table %s map %s: rules write %v, want %v", id, name, o.Written.Rules, want)
			}
			checkSet(t, id.String(), o)
		}
		for _, h := range tb.Holdings {
			if h.Fragment.Tables[id] != h {
				t.Errorf("table %s: holding of %s is not its own", id, h.Fragment)
			}
		}
	}
	shadowed := 0
	for _, f := range append(s.SortedFragments(), s.Unclaimed) {
		shadowed += views.StatusOf(f).Shadowed
	}
	if s.Shadowed() != shadowed {
		t.Errorf("%d elements are shadowed, want %d", s.Shadowed(), shadowed)
	}
	for key, f := range s.Fragments {
		for id, h := range f.Tables {
			if f.Key != key || s.Tables[id] != h.Table || !slices.Contains(h.Table.Holdings, h) {
				t.Errorf("fragment %s table %s: holding is not the table's", key, id)
			}
		}
	}
	checkUsage(t, s)
	checkPrices(t, s)
	if has := s.HasUnclaimed(allTables); has != (len(unclaimedOf(s)) > 0) {
		t.Errorf("there is unclaimed content: %t, want %v", has, unclaimedOf(s))
	}
}

func checkObjects(t tester, tb *merge.Table, refs map[merge.ObjectID]int) {
	t.Helper()
	for _, o := range partsOf[*merge.Object](tb) {
		if want := refs[o.ID]; o.Refs != want || want > 0 && !o.Exists() {
			t.Errorf("table %s %s has %d references, want %d; exists: %t", tb.ID, o.ID.Name, o.Refs, want, o.Exists())
		}
		if !slices.IsSortedFunc(o.Shares, func(a, b *merge.ObjectShare) int { return order(a.Fragment, b.Fragment) }) {
			t.Errorf("table %s %s: shares are not in order", tb.ID, o.ID.Name)
		}
		for _, sh := range o.Shares {
			if h := sh.Fragment.Tables[tb.ID]; h == nil || h.Shares[o.ID] != sh || !sh.Decl.Equal(o.Decl()) {
				t.Errorf("table %s %s: share of %s is not held or disagrees", tb.ID, o.ID.Name, sh.Fragment)
			}
		}
	}
}

// objectName names a chain or set of any table.
type objectName struct {
	table nft.TableID
	name  string
}

// partsOf returns the parts of one type of a table, in order.
func partsOf[O merge.Part](t *merge.Table) []O {
	var all []O
	for _, p := range t.SortedParts() {
		if o, ok := p.(O); ok {
			all = append(all, o)
		}
	}
	return all
}

// sharesOf returns the shares of one type of a fragment in a table, in order.
func sharesOf[S merge.Share](h *merge.Holding) []S {
	var all []S
	for _, id := range merge.SortedObjects(h.Shares) {
		if sh, ok := h.Shares[id].(S); ok {
			all = append(all, sh)
		}
	}
	return all
}

func order(a, b *merge.Fragment) int { return a.Compare(b) }

func checkSet(t tester, table string, o *merge.Set) {
	t.Helper()
	if !slices.IsSortedFunc(o.Shares, func(a, b *merge.SetShare) int { return order(a.Fragment, b.Fragment) }) {
		t.Errorf("table %s set %s: shares are not in order", table, o.ID.Name)
	}
	for _, sh := range o.Shares {
		shadowed := 0
		for id, e := range sh.Elements.All() {
			if w, _, _ := o.Wanted(id); w.Data != e.Data {
				shadowed++
			}
		}
		if sh.Shadowed != shadowed {
			t.Errorf("table %s set %s: share of %s has %d shadowed, want %d", table, o.ID.Name, sh.Fragment, sh.Shadowed, shadowed)
		}
		if h := sh.Fragment.Tables[o.Table.ID]; h == nil || h.Shares[o.ID] != sh || !sh.Decl.Equal(o.Decl()) {
			t.Errorf("table %s set %s: share of %s is not held or disagrees", table, o.ID.Name, sh.Fragment)
		}
	}
	union, passive := map[string]bool{}, 0
	for _, sh := range o.Shares {
		for id := range sh.Elements.All() {
			union[id] = true
		}
		if sh.Passive {
			passive = sh.Elements.Len()
		}
	}
	inForce := len(slices.Collect(o.View(everything).Sorted()))
	if o.Merge != nil {
		if want := slices.Collect(o.View(everything).Sorted()); !slices.Equal(want, o.Sorted()) {
			t.Errorf("table %s set %s: merged are %v, want %v", table, o.ID.Name, o.Sorted(), want)
		}
	} else if want := len(union) - passive; o.Size() != want || inForce != want {
		t.Errorf("table %s set %s: size is %d and %d are in force, want %d", table, o.ID.Name, o.Size(), inForce, want)
	}
	if o.Pools == nil {
		return
	}
	l := o.Pools.Layout
	want := merge.Pools{Layout: l, Backends: packed.NewCounts(l.BackendLen(), 0), Totals: packed.NewCounts(l.DestLen(), 0)}
	for _, sh := range o.Shares {
		for id, e := range sh.Elements.All() {
			if o.Winner(id) == sh && sh.Flows() {
				want.Count(&e, 1)
			}
		}
	}
	if poolsText(&want) != poolsText(o.Pools) {
		t.Errorf("table %s set %s: pools are %s, want %s", table, o.ID.Name, poolsText(o.Pools), poolsText(&want))
	}
}

func poolsText(p *merge.Pools) string {
	if p == nil {
		return "none"
	}
	return fmt.Sprintf("%+v %v %v", p.Layout, maps.Collect(p.Backends.All()), maps.Collect(p.Totals.All()))
}

// stateText is everything that Rollback must restore, for comparing.
func stateText(s *merge.State) string {
	var b strings.Builder
	for _, f := range append(s.SortedFragments(), s.Unclaimed) {
		fmt.Fprintf(&b, "fragment %q %d adopted=%t\n", f.Owner, f.Priority, f.Adopted)
		for _, h := range f.SortedHoldings() {
			fmt.Fprintf(&b, " table %s %q kernel=%t dormant=%d asleep=%t\n", h.Table.ID, h.Comment, h.Table.Kernel, h.Dormant, h.Table.Asleep)
			for _, sh := range sharesOf[*merge.ObjectShare](h) {
				id := sh.Decl.ID()
				o := h.Table.Object(id)
				fmt.Fprintf(&b, "  %s %v at %d kernel=%v refs %d owner %q\n", describeObject(id), sh.Decl, slices.Index(o.Shares, sh), o.Kernel, o.Refs, o.Owner)
			}
			for _, sh := range sharesOf[*merge.ChainShare](h) {
				o := h.Table.Chain(sh.Decl.Name)
				fmt.Fprintf(&b, "  chain %s at %d kernel=%t refs %d refers to %v\n", chainText(sh.Decl), slices.Index(o.Shares, sh), o.Kernel != nil, o.Refs, sh.Refs)
				for _, r := range sh.Rules {
					fmt.Fprintf(&b, "   %p %x %q %v %t\n", r, r.Rule.Fingerprint, r.Owner, r.Handle, r.Adopted)
				}
				for _, r := range o.Rules {
					fmt.Fprintf(&b, "   kernel %p\n", r)
				}
			}
			for _, sh := range sharesOf[*merge.SetShare](h) {
				o := h.Table.Set(sh.Decl.Name)
				fmt.Fprintf(&b, "  set %s at %d kernel=%t refs %d shadowed %d conntrack=%t affinity=%t purged=%t written %v %t %t %t pools %v touched %d\n", setText(sh.Decl), slices.Index(o.Shares, sh),
					o.Kernel != nil, o.Refs, sh.Shadowed, sh.Conntrack, sh.Affinity, o.Purged, o.Written.Rules, o.Written.Lost(), sh.Waiting, sh.Passive, poolsText(o.Pools), len(o.Touched))
				for _, id := range sh.Elements.IDs() {
					e, _ := sh.Elements.Get(id)
					fmt.Fprintf(&b, "   %s\n", elementText(&e))
				}
			}
		}
	}
	return b.String()
}
