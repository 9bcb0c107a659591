package desired_test

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/aggregator/desired/planner"
	"github.com/weft-proxy/weft/nft"
	nftobject "github.com/weft-proxy/weft/nft/object"
	nftset "github.com/weft-proxy/weft/nft/set"
)

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
			if after := stateText(w.s); after != before {
				t.Fatalf("the refusal changed the state: %v\nbefore:\n%s\nafter:\n%s", err, before, after)
			}
			if after := planText(planner.Make(w.s)); after != plan {
				t.Fatalf("the refusal changed the plan: %v\nbefore:\n%s\nafter:\n%s", err, plan, after)
			}
			if after := told(t, w.s); after != said {
				t.Fatalf("the refusal is visible: %v\nbefore:\n%s\nafter:\n%s", err, said, after)
			}
			if after := scopeText(w.s); after != version {
				t.Fatalf("the refusal changed the scope: %v\nbefore:\n%s\nafter:\n%s", err, version, after)
			}
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

// TestLawConflict has two fragments declare an object otherwise, or one need what
// the other has: an update that would break it is refused, with the name of the other one,
// until that one has given way.
func TestLawConflict(t *testing.T) {
	chains := []desired.Chain{regular("o"), base("o", 0), base("o", 1), withPolicy(base("o", 0), true), {Decl: &nftobject.Chain{Name: "o", Comment: "odd"}}}
	sets := []desired.Set{addrSet("o"), intervalSet("o"), addrMap("o"), verdictMap("o"), withFlags(addrSet("o"), nftset.FlagTimeout), withFlags(addrMap("o"), nftset.FlagTimeout)}
	objects := []*nftobject.Object{declared("limit o", "rate 1/second"), declared("limit o", "rate 2/second"), {Kind: nft.ObjectLimit, Name: "o", Text: "rate 1/second", Comment: "odd"}}
	rapid.Check(t, func(t *rapid.T) {
		keys := drawKeys(t, 3)
		s := merge.New()
		var first, second, user any
		switch rapid.SampledFrom([]string{"set", "chain", "object"}).Draw(t, "kind") {
		case "set":
			pair := rapid.Permutation(sets).Draw(t, "declarations")
			first, second, user = pair[0], pair[1], regular("user", rule("use", "@o"))
		case "object":
			pair := rapid.Permutation(objects).Draw(t, "declarations")
			first, second, user = pair[0], pair[1], regular("user", rule("use", "#limit o"))
		default:
			pair := rapid.Permutation(chains).Draw(t, "declarations")
			first, second, user = pair[0], pair[1], regular("user", rule("use", "o"))
		}
		priority := func() int32 { return rapid.Int32Range(-1, 1).Draw(t, "priority") }
		must := func(u *desired.Update) {
			t.Helper()
			if err := s.Apply(u); err != nil {
				t.Fatal(err)
			}
		}
		refused := func(u *desired.Update, reason desired.Reason, by desired.Key) {
			t.Helper()
			before := stateText(s)
			var r *desired.Rejection
			if err := s.Apply(u); !errors.As(err, &r) || r.Violations[0].Reason != reason || !strings.Contains(r.Violations[0].Message, by.String()) {
				t.Fatalf("%v: want reason %v and the name of %s", err, reason, by)
			}
			if after := stateText(s); after != before {
				t.Fatalf("the refusal changed the state:\n%s\nit was:\n%s", after, before)
			}
		}
		must(snapshot(keys[0], priority(), in(ipWeft, first)))
		refused(snapshot(keys[1], priority(), in(ipWeft, second)), desired.ReasonConflict, keys[0])
		must(snapshot(keys[1], priority(), in(ipDeny, second)))
		refused(patch(keys[1], in(ipWeft, second)), desired.ReasonConflict, keys[0])
		// A base chain cannot be jumped to; everything else can be used.
		if c, ok := first.(desired.Chain); !ok || c.Decl.Base == nil {
			must(snapshot(keys[2], priority(), in(ipWeft, user)))
			refused(snapshot(keys[0], 0), desired.ReasonReference, keys[2])
			must(snapshot(keys[2], 0))
		}
		var r *desired.Rejection
		if err := s.Apply(snapshot(keys[2], priority(), in(ipDeny, regular("user", rule("use", "missing"))))); !errors.As(err, &r) ||
			r.Violations[0].Reason != desired.ReasonReference || !strings.Contains(r.Violations[0].Object.String(), "chain user rule 1") || !strings.Contains(r.Violations[0].Message, "missing") {
			t.Fatalf("%v: want the place of the dangling reference", err)
		}
		must(snapshot(keys[0], 0))
		must(snapshot(keys[1], priority(), in(ipWeft, second)))
	})
}
