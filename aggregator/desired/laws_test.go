package desired_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/aggregator/desired/planner"
	"github.com/weft-proxy/weft/aggregator/desired/views"
	"github.com/weft-proxy/weft/nft"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// fragmentKeys are more fragments than drawKey has, in no order.
var fragmentKeys = []desired.Key{{"b", "one"}, {"a", "two"}, {"c", "x"}, {"a", "one"}, {"b", "a"}, {"aa", "one"}}

// drawKeys draws some fragments.
func drawKeys(t *rapid.T, least int) []desired.Key {
	n := rapid.IntRange(least, len(fragmentKeys)).Draw(t, "fragments")
	return rapid.Permutation(fragmentKeys).Draw(t, "keys")[:n]
}

// fixpoint applies updates until no more of them are accepted, and returns those
// that were.
func fixpoint(s *merge.State, updates []*desired.Update) (accepted []*desired.Update) {
	for again := true; again && len(updates) > 0; {
		again = false
		var refused []*desired.Update
		for _, u := range updates {
			use(u, s.Scope())
			if s.Apply(u) != nil {
				refused = append(refused, u)
				continue
			}
			accepted, again = append(accepted, u), true
		}
		updates = refused
	}
	return accepted
}

// told returns the views of a state as text: status, content, record, scope.
func told(t *rapid.T, s *merge.State) string {
	t.Helper()
	record, err := json.Marshal(views.Record(s))
	must(t, err)
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%v\n%v\n", record, unclaimedOf(s), planner.Live(s))
	for _, st := range views.Fragments(s) {
		tables, _ := contentOf(s, st.Key)
		fmt.Fprintf(&b, "%+v\n", st)
		for _, tu := range tables {
			fmt.Fprintf(&b, " %s %q %t\n", tu.Table, tu.Comment, tu.Dormant)
			for _, d := range merge.ObjectDecls(&tu) {
				fmt.Fprintf(&b, "  %s\n", itemText(d))
			}
			for _, c := range tu.PutChains {
				fmt.Fprintf(&b, "  %s", chainText(c.Decl))
				for _, r := range c.Rules {
					fmt.Fprintf(&b, " %q", r.Text)
				}
				b.WriteByte('\n')
			}
			for _, p := range tu.PutSets {
				fmt.Fprintf(&b, "  %s %t\n", setText(p.Decl), p.Conntrack)
				var elements []string
				for i := range p.Elements {
					elements = append(elements, "   "+elementText(&p.Elements[i])+"\n")
				}
				slices.Sort(elements)
				b.WriteString(strings.Join(elements, ""))
			}
		}
	}
	return b.String()
}

// commitTo plans, executes on a kernel, and accepts.
func commitTo(t *rapid.T, s *merge.State, k *fakeKernel) {
	t.Helper()
	p := planner.Make(s)
	k.execute(t, p)
	planner.Accept(s)
}

// TestLawOrderOfArrival has the same fragments arrive in two orders, with commits
// in between and with others that come and go: ruleset and status are the same.
func TestLawOrderOfArrival(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var updates []*desired.Update
		for _, key := range drawKeys(t, 2) {
			u := &desired.Update{Fragment: key, Snapshot: true, Priority: rapid.Int32Range(-1, 1).Draw(t, "priority")}
			u.Tables = []desired.TableUpdate{drawTableUpdate(t, true)}
			u.Tables[0].Comment = rapid.SampledFrom([]string{"", "one", "two"}).Draw(t, "table comment")
			updates = append(updates, u)
		}
		one, oneKernel := merge.New(), newFakeKernel()
		accepted := fixpoint(one, updates)
		commitTo(t, one, oneKernel)

		two, twoKernel := merge.New(), newFakeKernel()
		passing := snapshot(desired.Key{"passing", "by"}, rapid.Int32Range(-2, 2).Draw(t, "priority of the one passing by"),
			in(ipWeft, addrSet("s0", member("10.0.0.1"), member("10.0.0.9")), addrMap("m0", mapped("10.0.0.1", "10.9.9.9")), regular("c2", rule("passing"))))
		came := two.Apply(passing) == nil
		left := rapid.Permutation(accepted).Draw(t, "order")
		for refused := 0; len(left) > 0; {
			n := rapid.IntRange(1, len(left)).Draw(t, "commit after")
			batch := left[:n]
			left = left[n:]
			done := fixpoint(two, batch)
			for _, u := range batch {
				if !slices.Contains(done, u) {
					left = append(left, u)
				}
			}
			commitTo(t, two, twoKernel)
			if refused += n; len(done) > 0 {
				refused = 0
			}
			if refused < len(left) || len(left) == 0 {
				continue
			}
			// All other updates are refused: because of the passing fragment, or wrongly.
			if !came {
				t.Fatalf("%d fragments are refused in this order", len(left))
			}
			if two.Apply(snapshot(passing.Fragment, 0)) != nil {
				t.Skip("another fragment refers to the passing one")
			}
			came, refused = false, 0
		}
		if err := two.Apply(snapshot(passing.Fragment, 0)); err != nil {
			t.Skip("another fragment refers to the passing one")
		}
		commitTo(t, two, twoKernel)
		// The comment of a table is fixed when it is made.
		if got, want := twoKernel.text(), oneKernel.text(); got != want {
			t.Fatalf("kernel has:\n%s\nin the other order:\n%s", got, want)
		}
		if got, want := told(t, two), told(t, one); got != want {
			t.Fatalf("state is:\n%s\nin the other order:\n%s", got, want)
		}
	})
}

// TestLawRefusal has random updates refused: for the reason that the model finds,
// naming the others that are concerned, and without any effect.
func TestLawRefusal(t *testing.T) {
	refused := 0
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range rapid.IntRange(2, 20).Draw(t, "steps") {
			u := drawUpdate(t)
			for i := range u.Tables {
				u.Tables[i].Comment = rapid.SampledFrom([]string{"", "one", "two"}).Draw(t, "table comment")
			}
			use(u, w.s.Scope())
			before, plan, said, version := stateText(w.s), planText(planner.Make(w.s)), told(t, w.s), scopeText(w.s)
			err := w.s.Apply(u)
			if err == nil {
				w.m, _ = w.m.apply(u)
				if rapid.IntRange(0, 2).Draw(t, "commit") == 0 {
					w.commit()
				}
				continue
			}
			refused++
			same(t, "the state after a refusal", stateText(w.s), before)
			same(t, "the plan after a refusal", planText(planner.Make(w.s)), plan)
			same(t, "what is told after a refusal", told(t, w.s), said)
			same(t, "the scope after a refusal", scopeText(w.s), version)
			w.checkBlame(u, err)
		}
		w.commit()
	})
	if refused == 0 {
		t.Error("nothing was ever refused")
	}
}

func scopeText(s *merge.State) string {
	var b strings.Builder
	for _, id := range []nft.TableID{ipWeft, ipDeny} {
		table := s.Scope().Table(id)
		for _, name := range []string{"s0", "s1", "i0", "m0", "v0", "e0"} {
			if d, ok := table.Set(name); ok {
				b.WriteString(setText(d) + "\n")
			}
		}
	}
	return b.String()
}

// checkBlame checks that conflicts and references in use name other fragments,
// those that the model finds.
func (w *world) checkBlame(u *desired.Update, err error) {
	w.t.Helper()
	var r *desired.Rejection
	if !errors.As(err, &r) {
		return
	}
	for _, v := range r.Violations {
		var named []desired.Key
		for key := range w.m {
			if strings.Contains(v.Message, "fragment "+key.String()) {
				named = append(named, key)
			}
		}
		inUse := strings.Contains(v.Message, "still in use") || strings.Contains(v.Message, "while it is in use")
		declares := strings.Contains(v.Message, "contradicts")
		switch {
		case inUse && len(named) == 0, declares && len(named) != 1:
			w.t.Fatalf("violation names %v: %+v", named, v)
		case declares && v.Reason != desired.ReasonConflict:
			w.t.Fatalf("violation has another reason: %+v", v)
		case declares && !w.contradicts(u, named[0], v.Object.String()):
			w.t.Fatalf("fragment %s does not contradict the update: %+v", named[0], v)
		}
		for _, key := range named {
			if inUse && key != u.Fragment && !w.refers(key, v.Object.String()) {
				w.t.Fatalf("fragment %s does not refer to it: %+v", key, v)
			}
		}
	}
}

// contradicts reports whether a fragment declares an object otherwise than the
// update does.
func (w *world) contradicts(u *desired.Update, other desired.Key, object string) bool {
	f := w.m[other]
	for _, tu := range u.Tables {
		mt := f.tables[tu.Table]
		if mt == nil {
			continue
		}
		for _, d := range merge.ObjectDecls(&tu) {
			if o, ok := mt.objects[d.ID()]; ok && object == "table "+tu.Table.String()+" "+describeObject(d.ID()) && !o.Equal(d) {
				return true
			}
		}
		for _, c := range tu.PutChains {
			if o, ok := mt.chains[c.Decl.Name]; ok && object == "table "+tu.Table.String()+" chain "+c.Decl.Name && !merge.EqualChain(o.Decl, c.Decl) {
				return true
			}
		}
		for _, p := range tu.PutSets {
			if o, ok := mt.sets[p.Decl.Name]; ok && object == "table "+tu.Table.String()+" set "+p.Decl.Name && !o.decl.Equal(p.Decl) {
				return true
			}
		}
	}
	return false
}

// refers reports whether a fragment refers to an object, "table ip weft set s0".
func (w *world) refers(key desired.Key, object string) bool {
	for id, mt := range w.m[key].tables {
		for _, c := range mt.chains {
			for _, r := range c.Rules {
				for _, item := range ruleObjects(r) {
					if object == "table "+id.String()+" "+describeObject(item) {
						return true
					}
				}
				for _, name := range r.Sets {
					if object == "table "+id.String()+" set "+name {
						return true
					}
				}
				for _, name := range r.Chains {
					if object == "table "+id.String()+" chain "+name {
						return true
					}
				}
			}
		}
		for _, s := range mt.sets {
			for _, e := range s.elements {
				if object == "table "+id.String()+" "+describeObject(leadsToObject(s.decl, e.Data)) {
					return true
				}
				if s.decl.Verdict && object == "table "+id.String()+" chain "+verdictChain(e.Data) {
					return true
				}
			}
		}
	}
	return false
}

// use notes what the rules of an update were compiled against: the present
// declarations, or older ones where the rules are of no use for those.
func use(u *desired.Update, scope *merge.Scope) {
	for i := range u.Tables {
		tu := &u.Tables[i]
		tu.Uses = map[string]*nftset.Set{}
		for _, c := range tu.PutChains {
			for _, r := range c.Rules {
				for _, name := range r.Sets {
					d, ok := scope.Table(tu.Table).Set(name)
					own := slices.ContainsFunc(tu.PutSets, func(s desired.Set) bool { return s.Decl.Name == name })
					switch n := ruleKeyLen(r); {
					case !ok || own:
					case n == 0 || n == d.Key.Len:
						tu.Uses[name] = d
					default:
						tu.Uses[name] = addrSet(name).Decl
					}
				}
			}
		}
	}
}
