package desired_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/aggregator/desired/planner"
	"github.com/weft-proxy/weft/aggregator/desired/views"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/kernel"
)

// twoPublishers has policy and extra share a map with one key of which both have a
// value: policy's comes first.
func twoPublishers(t *testing.T) *harness {
	h := newHarness(t)
	h.commit(
		snapshot(policy, 1, in(ipWeft,
			base("input", 0, rule("first"), rule("second")), addrSet("listed", member("192.0.2.1")),
			addrMap("shared", mapped("192.0.2.1", "198.51.100.1")), declared("counter hits", ""), flowtable("fast"))),
		snapshot(extra, 2, in(ipWeft, addrMap("shared", mapped("192.0.2.1", "198.51.100.2"), mapped("192.0.2.2", "198.51.100.2")))),
	)
	return h
}

// additionName returns the name of what an op adds, or "" for no op.
func additionName(op kernel.Op) string {
	switch op := op.(type) {
	case kernel.AddChain:
		return op.Chain.Name
	case kernel.AddSet:
		return op.Set.Name
	case kernel.AddObject:
		return op.Object.Name
	case kernel.AddFlowtable:
		return op.Flowtable.Name
	default:
		return ""
	}
}

func TestOwners(t *testing.T) {
	h := twoPublishers(t)
	keys := func(owners []desired.Owned, ok bool) []desired.Key {
		t.Helper()
		if ok != (len(owners) > 0) {
			t.Errorf("%d owners, %t", len(owners), ok)
		}
		var all []desired.Key
		for _, o := range owners {
			all = append(all, o.Fragment)
		}
		return all
	}
	part := func(id merge.ObjectID) []desired.Key {
		owners, op, ok := views.Owners(h.State, ipWeft, id)
		if name := additionName(op); name != id.Name && ok || name != "" && !ok {
			t.Errorf("%s: addition %v, %t", describeObject(id), op, ok)
		}
		return keys(owners, ok)
	}
	for what, got := range map[string]struct{ got, want []desired.Key }{
		"table":           {keys(views.OwnersOfTable(h.State, ipWeft)), []desired.Key{policy, extra}},
		"no table":        {keys(views.OwnersOfTable(h.State, ipDeny)), nil},
		"chain":           {part(merge.ChainID("input")), []desired.Key{policy}},
		"no chain":        {part(merge.ChainID("output")), nil},
		"counter":         {part(named("counter hits")), []desired.Key{policy}},
		"flowtable":       {part(named("flowtable fast")), []desired.Key{policy}},
		"no object":       {part(named("quota hits")), nil},
		"map":             {part(merge.SetID("shared")), []desired.Key{policy, extra}},
		"no set":          {part(merge.SetID("missing")), nil},
		"element":         {keys(views.OwnersOfElement(h.State, ipWeft, "shared", member("192.0.2.1"))), []desired.Key{policy, extra}},
		"other's element": {keys(views.OwnersOfElement(h.State, ipWeft, "shared", member("192.0.2.2"))), []desired.Key{extra}},
		"no element":      {keys(views.OwnersOfElement(h.State, ipWeft, "shared", member("192.0.2.3"))), nil},
		"element, no set": {keys(views.OwnersOfElement(h.State, ipWeft, "missing", member("192.0.2.1"))), nil},
	} {
		if diff := cmp.Diff(got.want, got.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	if o, ok := views.OwnerOfRule(h.State, nft.TableID{}, "input", 1); ok {
		t.Errorf("a rule of no table is owned by %v", o)
	}
}

// TestPreviewDescribesWhatGoes removes a rule, adds one in front, makes a set anew and
// keeps a value that another fragment's precedes.
func TestPreviewDescribesWhatGoes(t *testing.T) {
	h := twoPublishers(t)
	h.apply(snapshot(policy, 1, in(ipWeft,
		base("input", 0, rule("zeroth"), rule("first")), intervalSet("listed"),
		addrMap("shared", mapped("192.0.2.1", "198.51.100.1")), declared("counter hits", ""), flowtable("fast"))))
	p := planner.Preview(h.State, []desired.Key{policy, extra, services})
	var rule, set, head bool
	for i, op := range p.Ops {
		b := p.Before[i]
		switch op := op.(type) {
		case kernel.DeleteRule:
			rule = b.Rule != nil && b.Rule.Text == "second"
		case kernel.DeleteSet:
			set = b.Set != nil && b.Set.Name == op.Name && b.Set.Flags == 0
		case kernel.AddRule:
			head = b.Head
		}
	}
	if !rule || !set || !head {
		t.Errorf("rule %t, set %t, head %t of\n%s", rule, set, head, planText(p.Plan))
	}
	want := []desired.Shadow{{
		Table: ipWeft, Decl: addrMap("shared").Decl, Winner: policy, Hidden: extra,
		Element: mapped("192.0.2.1", "198.51.100.1"), HiddenElement: mapped("192.0.2.1", "198.51.100.2"),
	}}
	if diff := cmp.Diff(want, p.Shadows); diff != "" {
		t.Errorf("shadows (-want +got):\n%s", diff)
	}
	h.Rollback()
}
