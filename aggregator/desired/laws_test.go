package desired_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/aggregator/desired/packed"
	"github.com/weft-proxy/weft/aggregator/desired/planner"
	"github.com/weft-proxy/weft/aggregator/desired/views"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// The laws of the merge, each with a property of its own: what TestHistory finds
// to be wrong, one of these should name. rapid prints the seed of what fails.

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
	if err != nil {
		t.Fatal(err)
	}
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
	if err := k.commit(p.Ops); err != nil {
		t.Fatalf("commit: %v\n%s", err, planText(p))
	}
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

// TestLawSharedSet has fragments state and withdraw elements of one set: an
// element is there as long as somebody states it.
func TestLawSharedSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, k := merge.New(), newFakeKernel()
		keys := drawKeys(t, 2)
		owners := map[string]map[desired.Key]bool{}
		for _, key := range keys {
			if err := s.Apply(snapshot(key, 0, in(ipWeft, addrSet("s")))); err != nil {
				t.Fatal(err)
			}
		}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			key := rapid.SampledFrom(keys).Draw(t, "fragment")
			e := drawAddr.Draw(t, "element")
			change := desired.Elements{Set: "s", Add: []nftset.Element{member(e)}}
			if owners[e] == nil {
				owners[e] = map[desired.Key]bool{}
			}
			owners[e][key] = true
			if rapid.Bool().Draw(t, "remove") {
				change = desired.Elements{Set: "s", Remove: []nftset.Element{member(e)}}
				delete(owners[e], key)
			}
			if err := s.Apply(patch(key, in(ipWeft, change))); err != nil {
				t.Fatal(err)
			}
			if rapid.Bool().Draw(t, "commit") {
				commitTo(t, s, k)
			}
		}
		commitTo(t, s, k)
		for e, who := range owners {
			if _, there := k.tables[ipWeft].sets["s"].elements[packed.ID(addrSet("s").Decl, ptr(member(e)))]; there != (len(who) > 0) {
				t.Fatalf("element %s is there: %t, its owners are %v", e, there, slices.Collect(maps.Keys(who)))
			}
		}
	})
}

func ptr[T any](v T) *T { return &v }

// rank orders fragments as the design says: by priority, publisher, name.
func rank(priorities map[desired.Key]int32) func(a, b desired.Key) int {
	return func(a, b desired.Key) int {
		switch {
		case priorities[a] != priorities[b]:
			return int(priorities[a]) - int(priorities[b])
		case a.Publisher != b.Publisher:
			return strings.Compare(a.Publisher, b.Publisher)
		default:
			return strings.Compare(a.Name, b.Name)
		}
	}
}

// TestLawShadowing has fragments disagree on a map: the first by (priority,
// publisher, name) wins, the others' elements are counted as shadowed, and live
// again when it goes.
func TestLawShadowing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, k := merge.New(), newFakeKernel()
		keys := drawKeys(t, 2)
		priorities, values := map[desired.Key]int32{}, map[desired.Key]map[string]string{}
		for range rapid.IntRange(2, 25).Draw(t, "steps") {
			key := rapid.SampledFrom(keys).Draw(t, "fragment")
			addr, value := drawAddr.Draw(t, "key"), drawAddr.Draw(t, "value")
			what := rapid.SampledFrom([]string{"put", "put", "remove", "withdraw", "priority"}).Draw(t, "step")
			if values[key] == nil {
				what = "snapshot"
			}
			var u *desired.Update
			switch what {
			case "put":
				values[key][addr] = value
				u = patch(key, in(ipWeft, desired.Elements{Set: "m", Add: []nftset.Element{mapped(addr, value)}}))
			case "remove":
				delete(values[key], addr)
				u = patch(key, in(ipWeft, desired.Elements{Set: "m", Remove: []nftset.Element{mapped(addr, value)}}))
			case "withdraw":
				delete(values, key)
				u = snapshot(key, 0)
			default:
				if values[key] == nil {
					values[key] = map[string]string{addr: value}
				}
				priorities[key] = rapid.Int32Range(-1, 1).Draw(t, "priority")
				m := addrMap("m")
				for a, v := range values[key] {
					m.Elements = append(m.Elements, mapped(a, v))
				}
				u = snapshot(key, priorities[key], in(ipWeft, m))
			}
			if err := s.Apply(u); err != nil {
				t.Fatal(err)
			}
			if rapid.Bool().Draw(t, "commit") {
				commitTo(t, s, k)
				checkShadows(t, s, k, priorities, values)
			}
		}
		commitTo(t, s, k)
		checkShadows(t, s, k, priorities, values)
	})
}

func checkShadows(t *rapid.T, s *merge.State, k *fakeKernel, priorities map[desired.Key]int32, values map[desired.Key]map[string]string) {
	t.Helper()
	want, shadowed := map[string]string{}, map[desired.Key]int{}
	for _, key := range slices.SortedFunc(maps.Keys(values), rank(priorities)) {
		for a, v := range values[key] {
			if first, taken := want[a]; !taken {
				want[a] = v
			} else if first != v {
				shadowed[key]++
			}
		}
	}
	got := map[string]string{}
	if len(values) > 0 {
		for _, e := range k.tables[ipWeft].sets["m"].elements {
			got[e.Key] = e.Data
		}
	}
	if len(got) != len(want) {
		t.Fatalf("map has %d elements, want %d", len(got), len(want))
	}
	for a, v := range want {
		if got[addr(a)] != addr(v) {
			t.Fatalf("value of %s is %x, want %s of the first fragment", a, got[addr(a)], v)
		}
	}
	for key := range values {
		if st, ok := views.Fragment(s, key); !ok || st.Shadowed != shadowed[key] || st.Elements != len(values[key]) {
			t.Fatalf("status %+v of %s: want %d elements, %d of them shadowed", st, key, len(values[key]), shadowed[key])
		}
	}
}

// TestLawSharedChain has fragments share a chain: the rules of each follow each
// other, in the order of the fragments, and what did not change keeps its handle.
func TestLawSharedChain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, k := merge.New(), newFakeKernel()
		keys := drawKeys(t, 2)
		priorities, rules := map[desired.Key]int32{}, map[desired.Key][]string{}
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			key := rapid.SampledFrom(keys).Draw(t, "fragment")
			before := map[desired.Key][]uint64{}
			if tb := k.tables[ipWeft]; tb != nil {
				for _, r := range tb.chains["c"].rules {
					owner, _ := desired.ParseKey(r.owner)
					before[owner] = append(before[owner], r.n)
				}
			}
			texts := rapid.SliceOfN(rapid.SampledFrom([]string{"accept", "drop", "counter", "return"}), 0, 5).Draw(t, "rules")
			priority := rapid.Int32Range(-1, 1).Draw(t, "priority")
			moved := priority != priorities[key]
			priorities[key], rules[key] = priority, texts
			c := regular("c")
			for _, text := range texts {
				c.Rules = append(c.Rules, rule(text))
			}
			if err := s.Apply(snapshot(key, priority, in(ipWeft, c))); err != nil {
				t.Fatal(err)
			}
			commitTo(t, s, k)

			var want, got []string
			for _, f := range slices.SortedFunc(maps.Keys(rules), rank(priorities)) {
				for _, text := range rules[f] {
					want = append(want, f.String()+" "+text)
				}
			}
			after := map[desired.Key][]uint64{}
			for _, r := range k.tables[ipWeft].chains["c"].rules {
				got = append(got, r.owner+" "+r.rule.Text)
				owner, _ := desired.ParseKey(r.owner)
				after[owner] = append(after[owner], r.n)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("rules are\n%q, want\n%q", got, want)
			}
			for f := range before {
				// A fragment that moves can take another's place.
				if f != key && !moved && !slices.Equal(before[f], after[f]) {
					t.Fatalf("rules of %s had handles %v and have %v, as %s has changed", f, before[f], after[f], key)
				}
			}
		}
	})
}

// TestLawSnapshotIsItsPatches leads a fragment somewhere by patches, and another
// state there by one snapshot: both are the same, and the snapshot after the
// patches changes nothing.
func TestLawSnapshotIsItsPatches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one, two := newWorld(t), newWorld(t)
		// The same surroundings, of others.
		for range rapid.IntRange(0, 4).Draw(t, "others") {
			u := drawUpdate(t)
			u.Snapshot = true
			for i := range u.Tables {
				u.Tables[i].Elements = nil
			}
			one.apply(u)
			two.apply(u)
		}
		me := desired.Key{"b", "b"}
		first := snapshot(me, rapid.Int32Range(0, 1).Draw(t, "priority"), in(ipWeft, addrSet("s0"), addrMap("m0")))
		one.apply(first)
		if _, ok := one.m[me]; !ok {
			t.Skip("contradicts the others")
		}
		for range rapid.IntRange(1, 10).Draw(t, "patches") {
			u := drawUpdate(t)
			u.Fragment, u.Snapshot = me, false
			one.apply(u)
			if rapid.Bool().Draw(t, "commit") {
				one.commit()
			}
		}
		one.commit()
		tables, ok := contentOf(one.s, me)
		if !ok {
			t.Fatal("fragment is gone")
		}
		whole := snapshot(me, first.Priority, tables...)
		if err := two.s.Apply(whole); err != nil {
			t.Fatalf("the snapshot that the patches lead to is refused: %v", err)
		}
		two.m = one.m.clone()
		two.commit()
		if a, b := one.k.text(), two.k.text(); a != b {
			t.Fatalf("after the patches:\n%s\nafter the snapshot:\n%s", a, b)
		}
		if a, b := told(t, one.s), told(t, two.s); a != b {
			t.Fatalf("after the patches:\n%s\nafter the snapshot:\n%s", a, b)
		}
		if err := one.s.Apply(whole); err != nil {
			t.Fatal(err)
		}
		if p := planner.Make(one.s); !noOps(p) {
			t.Fatalf("the snapshot after the patches changes:\n%s", planText(p))
		}
	})
}
