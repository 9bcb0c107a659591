package desired

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weft-proxy/weft/aggregator/desired/packed"
	"github.com/weft-proxy/weft/nft"
)

// tester is what a check needs of *testing.T or *rapid.T.
type tester interface {
	Helper()
	Errorf(format string, args ...any)
}

// checkInvariants recomputes everything that the state counts incrementally.
func checkInvariants(t tester, s *State) {
	t.Helper()
	chainRefs, setRefs := map[objectName]int{}, map[objectName]int{}
	itemRefs := map[nft.TableID]map[objectID]int{}
	writes := map[objectName]map[value]int{}
	for id, tb := range s.tables {
		itemRefs[id] = map[objectID]int{}
		for _, o := range partsOf[*chain](tb) {
			for _, sh := range o.shares {
				for _, ref := range sh.refs {
					switch ref.Kind {
					case kindChain:
						chainRefs[objectName{id, ref.Name}]++
					case kindSet:
						setRefs[objectName{id, ref.Name}]++
					default:
						itemRefs[id][ref]++
					}
				}
				for _, r := range sh.rules {
					for _, w := range r.rule.Writes {
						if writes[objectName{id, w.Map}] == nil {
							writes[objectName{id, w.Map}] = map[value]int{}
						}
						v := value{data: w.Data, any: w.Any}
						if w.In != "" {
							v.in, v.any = tb.parts[setID(w.In)].(*set), false
						}
						writes[objectName{id, w.Map}][v]++
					}
				}
			}
		}
		for _, o := range partsOf[*set](tb) {
			for _, sh := range o.shares {
				for _, e := range sh.elements.All() {
					switch to := leadsTo(sh.decl, e.Data); {
					case to.Name == "":
					case to.Kind == kindChain:
						chainRefs[objectName{id, to.Name}]++
					default:
						itemRefs[id][to]++
					}
				}
			}
		}
	}
	for id, tb := range s.tables {
		checkObjects(t, tb, itemRefs[id])
		for _, o := range partsOf[*chain](tb) {
			name := o.id.Name
			if want := chainRefs[objectName{id, name}]; o.refs != want {
				t.Errorf("table %s chain %s has %d references, want %d", id, name, o.refs, want)
			}
			if o.refs > 0 && !o.exists() {
				t.Errorf("table %s chain %s: dangling", id, name)
			}
			sorted := slices.IsSortedFunc(o.shares, func(a, b *chainShare) int { return order(a.fragment, b.fragment) })
			for _, sh := range o.shares {
				if h := sh.fragment.tables[id]; h == nil || h.shares[o.id] != sh || !equalChain(sh.decl, o.decl()) && !sh.fragment.unclaimed {
					t.Errorf("table %s chain %s: share of %s is not held or disagrees", id, name, sh.fragment)
				}
			}
			if !sorted {
				t.Errorf("table %s chain %s: shares are not in order", id, name)
			}
		}
		for _, o := range partsOf[*set](tb) {
			name := o.id.Name
			if want := setRefs[objectName{id, name}]; o.refs != want {
				t.Errorf("table %s set %s has %d references, want %d", id, name, o.refs, want)
			}
			if o.refs > 0 && !o.exists() {
				t.Errorf("table %s set %s: dangling", id, name)
			}
			if want := writes[objectName{id, name}]; !maps.Equal(want, o.written.rules) {
				t.Errorf("table %s map %s: rules write %v, want %v", id, name, o.written.rules, want)
			}
			checkSet(t, id.String(), o)
		}
		for _, h := range tb.holdings {
			if h.fragment.tables[id] != h {
				t.Errorf("table %s: holding of %s is not its own", id, h.fragment)
			}
		}
	}
	shadowed := 0
	for _, f := range append(s.sorted(), s.unclaimed) {
		shadowed += f.status().Shadowed
	}
	if s.Shadowed() != shadowed {
		t.Errorf("%d elements are shadowed, want %d", s.Shadowed(), shadowed)
	}
	for key, f := range s.fragments {
		for id, h := range f.tables {
			if f.key != key || s.tables[id] != h.table || !slices.Contains(h.table.holdings, h) {
				t.Errorf("fragment %s table %s: holding is not the table's", key, id)
			}
		}
	}
	checkUsage(t, s)
	checkPrices(t, s)
	if has := s.HasUnclaimed(allTables); has != (len(s.Unclaimed()) > 0) {
		t.Errorf("there is unclaimed content: %t, want %v", has, s.Unclaimed())
	}
}

func checkObjects(t tester, tb *table, refs map[objectID]int) {
	t.Helper()
	for _, o := range partsOf[*object](tb) {
		if want := refs[o.id]; o.refs != want || want > 0 && !o.exists() {
			t.Errorf("table %s %s has %d references, want %d; exists: %t", tb.id, o.id.Name, o.refs, want, o.exists())
		}
		if !slices.IsSortedFunc(o.shares, func(a, b *objectShare) int { return order(a.fragment, b.fragment) }) {
			t.Errorf("table %s %s: shares are not in order", tb.id, o.id.Name)
		}
		for _, sh := range o.shares {
			if h := sh.fragment.tables[tb.id]; h == nil || h.shares[o.id] != sh || !sh.decl.equal(o.decl()) {
				t.Errorf("table %s %s: share of %s is not held or disagrees", tb.id, o.id.Name, sh.fragment)
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
func partsOf[O part](t *table) []O {
	var all []O
	for _, p := range t.sortedParts() {
		if o, ok := p.(O); ok {
			all = append(all, o)
		}
	}
	return all
}

// sharesOf returns the shares of one type of a fragment in a table, in order.
func sharesOf[S share](h *holding) []S {
	var all []S
	for _, id := range sortedObjects(h.shares) {
		if sh, ok := h.shares[id].(S); ok {
			all = append(all, sh)
		}
	}
	return all
}

func order(a, b *fragment) int { return a.compare(b) }

func checkSet(t tester, table string, o *set) {
	t.Helper()
	if !slices.IsSortedFunc(o.shares, func(a, b *setShare) int { return order(a.fragment, b.fragment) }) {
		t.Errorf("table %s set %s: shares are not in order", table, o.id.Name)
	}
	for _, sh := range o.shares {
		shadowed := 0
		for id, e := range sh.elements.All() {
			if w, _ := o.effective(id); w.Data != e.Data {
				shadowed++
			}
		}
		if sh.shadowed != shadowed {
			t.Errorf("table %s set %s: share of %s has %d shadowed, want %d", table, o.id.Name, sh.fragment, sh.shadowed, shadowed)
		}
		if h := sh.fragment.tables[o.table.id]; h == nil || h.shares[o.id] != sh || !sh.decl.Equal(o.decl()) {
			t.Errorf("table %s set %s: share of %s is not held or disagrees", table, o.id.Name, sh.fragment)
		}
	}
	union, passive := map[string]bool{}, 0
	for _, sh := range o.shares {
		for id := range sh.elements.All() {
			union[id] = true
		}
		if sh.passive {
			passive = sh.elements.Len()
		}
	}
	inForce := len(slices.Collect(o.view(everything).Sorted()))
	if o.merge != nil {
		if want := slices.Collect(o.view(everything).Sorted()); !slices.Equal(want, o.sorted()) {
			t.Errorf("table %s set %s: merged are %v, want %v", table, o.id.Name, o.sorted(), want)
		}
	} else if want := len(union) - passive; o.size() != want || inForce != want {
		t.Errorf("table %s set %s: size is %d and %d are in force, want %d", table, o.id.Name, o.size(), inForce, want)
	}
	if o.pools == nil {
		return
	}
	l := o.pools.layout
	want := pools{layout: l, backends: packed.NewCounts(l.BackendLen(), 0), totals: packed.NewCounts(l.DestLen(), 0)}
	for _, sh := range o.shares {
		for id, e := range sh.elements.All() {
			if o.winner(id) == sh && sh.flows() {
				want.count(&e, 1)
			}
		}
	}
	if want.text() != o.pools.text() {
		t.Errorf("table %s set %s: pools are %s, want %s", table, o.id.Name, o.pools.text(), want.text())
	}
}

// text is what the pools count.
func (p *pools) text() string {
	if p == nil {
		return "none"
	}
	return fmt.Sprintf("%+v %v %v", p.layout, maps.Collect(p.backends.All()), maps.Collect(p.totals.All()))
}

// stateText is everything that Rollback must restore, for comparing.
func stateText(s *State) string {
	var b strings.Builder
	for _, f := range append(s.sorted(), s.unclaimed) {
		fmt.Fprintf(&b, "fragment %q %d adopted=%t\n", f.owner, f.priority, f.adopted)
		for _, h := range f.holdings() {
			fmt.Fprintf(&b, " table %s %q kernel=%t dormant=%d asleep=%t\n", h.table.id, h.comment, h.table.kernel, h.dormant, h.table.asleep)
			for _, sh := range sharesOf[*objectShare](h) {
				id := sh.decl.id()
				o := h.table.object(id)
				fmt.Fprintf(&b, "  %s %v at %d kernel=%v refs %d owner %q\n", describeObject(id), sh.decl, slices.Index(o.shares, sh), o.kernel, o.refs, o.owner)
			}
			for _, sh := range sharesOf[*chainShare](h) {
				o := h.table.chain(sh.decl.Name)
				fmt.Fprintf(&b, "  chain %s at %d kernel=%t refs %d refers to %v\n", chainText(sh.decl), slices.Index(o.shares, sh), o.kernel != nil, o.refs, sh.refs)
				for _, r := range sh.rules {
					fmt.Fprintf(&b, "   %p %x %q %v %t\n", r, r.rule.Fingerprint, r.owner, r.handle, r.adopted)
				}
				for _, r := range o.rules {
					fmt.Fprintf(&b, "   kernel %p\n", r)
				}
			}
			for _, sh := range sharesOf[*setShare](h) {
				o := h.table.set(sh.decl.Name)
				fmt.Fprintf(&b, "  set %s at %d kernel=%t refs %d shadowed %d conntrack=%t affinity=%t purged=%t written %v %t %t %t pools %v touched %d\n", setText(sh.decl), slices.Index(o.shares, sh),
					o.kernel != nil, o.refs, sh.shadowed, sh.conntrack, sh.affinity, o.purged, o.written.rules, o.written.lost(), sh.waiting, sh.passive, o.pools.text(), len(o.touched))
				for _, id := range sh.elements.IDs() {
					e, _ := sh.elements.Get(id)
					fmt.Fprintf(&b, "   %s\n", elementText(&e))
				}
			}
		}
	}
	return b.String()
}
