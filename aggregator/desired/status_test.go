package desired_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/adopt"
	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/aggregator/desired/planner"
	"github.com/weft-proxy/weft/aggregator/desired/views"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/kernel"
	nftset "github.com/weft-proxy/weft/nft/set"
)

func TestContent(t *testing.T) {
	h := newHarness(t)
	tables := []desired.TableUpdate{
		in(ipDeny, addrSet("x")),
		in(ipWeft, regular("c", rule("a"), rule("b")), base("input", 0), addrSet("s", member("10.0.0.1"), member("10.0.0.2")), endpointMap("z")),
	}
	tables[0].Comment = "deny"
	h.commit(snapshot(services, 0, tables[1], tables[0]), snapshot(policy, 0, in(ipWeft, addrSet("s", member("10.0.0.3")))))
	got, ok := contentOf(h.State, services)
	if !ok || fmt.Sprint(got) != fmt.Sprint(tables) {
		t.Errorf("content:\n%+v\nwant:\n%+v", got, tables)
	}
	if _, ok := views.Content(h.State, extra); ok {
		t.Error("content of a fragment that does not exist")
	}
	if _, ok := views.Fragment(h.State, extra); ok {
		t.Error("status of a fragment that does not exist")
	}
	all := views.Fragments(h.State)
	if len(all) != 2 || all[0].Key != policy || all[1].Elements != 2 {
		t.Errorf("fragments %+v", all)
	}
}

func TestEmptyTableIsHeld(t *testing.T) {
	h := newHarness(t)
	wantPlan(t, "plan", h.commit(snapshot(services, 0, in(ipWeft))), "add table weft\n")
	h.restart(views.Record(h.State))
	empty(t, "when it is back", h.commit(snapshot(services, 0, in(ipWeft))))
	h.restart(desired.Record{})
	if u := unclaimedOf(h.State); len(u) != 1 || u[0] != (Unclaimed{Table: ipWeft}) {
		t.Errorf("unclaimed %v", u)
	}
	empty(t, "when it is back without a record", h.commit(snapshot(services, 0, in(ipWeft))))
	if u := unclaimedOf(h.State); len(u) != 0 {
		t.Errorf("unclaimed %v", u)
	}
	h.commit(snapshot(services, 0))
	if h.k.text() != "" {
		t.Errorf("kernel:\n%s", h.k.text())
	}
}

func TestSessionsAndRestarts(t *testing.T) {
	h := newHarness(t)
	watched := endpointMap("watched")
	watched.Conntrack = true
	first := snapshot(services, 0, in(ipWeft, watched, regular("c"), declared("counter hits", "")))
	first.Session, first.Serial = 7, 2
	h.commit(first, snapshot(policy, 0, in(ipWeft, regular("c"))))
	if keys := views.SessionFragments(h.State, 7); !slices.Equal(keys, []desired.Key{services}) || len(views.SessionFragments(h.State, 8)) != 0 {
		t.Errorf("session 7 has sent %v", keys)
	}
	want := desired.Status{Key: services, Session: 7, Serial: 2, Chains: 1, Sets: 1, Objects: 1}
	if st, ok := views.Fragment(h.State, services); !ok || st != want || len(h.Fragments) != 2 {
		t.Errorf("status %+v of %d, want %+v of 2", st, len(h.Fragments), want)
	}
	if fragments, flows := views.Awaited(h.State); fragments || flows {
		t.Errorf("before a restart fragments are awaited: %t, watched maps: %t", fragments, flows)
	}
	h.restart(views.Record(h.State))
	if fragments, flows := views.Awaited(h.State); !fragments || !flows {
		t.Errorf("after a restart fragments are awaited: %t, watched maps: %t", fragments, flows)
	}
	h.commit(first)
	if fragments, flows := views.Awaited(h.State); !fragments || flows {
		t.Errorf("with one fragment back fragments are awaited: %t, watched maps: %t", fragments, flows)
	}
}

func TestTakeShadowChanges(t *testing.T) {
	h := twoPublishers(t)
	if keys := h.TakeShadowChanges(); !slices.Equal(keys, []desired.Key{extra}) {
		t.Errorf("shadowed elements of %v have changed, want those of %s", keys, extra)
	}
	if keys := h.TakeShadowChanges(); keys != nil {
		t.Errorf("shadowed elements of %v have changed since", keys)
	}
}

// everything is the reader who sees all.
var everything = desired.Reader{All: true}

// contentOf is views.Content with the elements in place of views.
func contentOf(s *merge.State, key desired.Key) ([]desired.TableUpdate, bool) {
	tables, ok := views.Content(s, key)
	for i := range tables {
		for j := range tables[i].PutSets {
			set := &tables[i].PutSets[j]
			set.Elements, set.View = slices.Collect(set.All()), nil
		}
	}
	return tables, ok
}

// TestReadersSeeTheirOwn reads a table that two publishers share.
func TestReadersSeeTheirOwn(t *testing.T) {
	h := newHarness(t)
	mine, other := desired.Key{"mine", "f"}, desired.Key{"other", "f"}
	h.commit(
		snapshot(mine, 0, in(ipWeft, regular("both", rule("a")), addrSet("s", member("10.0.0.1"), member("10.0.0.2")))),
		snapshot(other, 0, in(ipWeft, regular("both", rule("b")), regular("theirs", rule("c")), addrSet("s", member("10.0.0.2"), member("10.0.0.3")), addrSet("hidden", member("10.0.0.4")))),
		snapshot(desired.Key{"other", "g"}, 0, in(ipDeny, addrSet("x"))),
	)
	reader := desired.Reader{Publisher: "mine"}
	if tables := views.Tables(h.State, reader); len(tables) != 1 || tables[0].Chains != 1 || tables[0].Rules != 1 || tables[0].Sets != 1 || tables[0].Elements != 2 || len(tables[0].Fragments) != 1 {
		t.Errorf("tables are %+v: want the reader's own content", tables)
	}
	m, _ := views.Merged(h.State, ipWeft, desired.DetailElements, reader, nil)
	if len(m.Chains) != 1 || len(m.Chains[0].Rules) != 1 || m.Chains[0].Rules[0].Owner != mine.String() || len(m.Chains[0].Fragments) != 1 {
		t.Errorf("chains are %+v: want the reader's own rule", m.Chains)
	}
	if len(m.Sets) != 1 || len(slices.Collect(m.Sets[0].Elements.Sorted())) != 2 || fmt.Sprint(m.Sets[0].Fragments) != fmt.Sprint([]desired.Key{mine}) {
		t.Errorf("sets are %+v: want the reader's own elements", m.Sets)
	}
	whole, _ := views.Merged(h.State, ipWeft, desired.DetailObjects, everything, map[string]struct{}{"s": {}, "none": {}})
	if len(whole.Chains) != 0 || len(whole.Sets) != 1 {
		t.Fatalf("by name there are %d chains and the sets %+v: want the set alone", len(whole.Chains), whole.Sets)
	}
	all := slices.Collect(whole.Sets[0].Elements.Sorted())
	if seen, others := m.Sets[0].Elements.Divide(m.Sets[0].Decl, all); !slices.Equal(seen, all[:2]) || !slices.Equal(others, all[2:]) {
		t.Errorf("the reader sees %v and not %v: want its own two of %v", seen, others, all)
	}
	if m, exists := views.Merged(h.State, ipDeny, desired.DetailElements, reader, nil); m != nil || !exists {
		t.Errorf("another's table: %+v, exists %t; want nothing of a table that exists", m, exists)
	}
	if m, exists := views.Merged(h.State, ipWeft, desired.DetailElements, desired.Reader{}, nil); m != nil || !exists {
		t.Errorf("without a reader it is %+v", m)
	}
	if m, _ := views.Merged(h.State, ipWeft, desired.DetailElements, everything, nil); len(m.Chains) != 2 || len(m.Sets) != 2 || len(slices.Collect(m.Sets[1].Elements.Sorted())) != 3 {
		t.Errorf("all of the table is %+v", m)
	}
}

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

var (
	owner = desired.Key{"owner", "f"}
	guest = desired.Key{"guest", "f"}
)

func unlimited(desired.Usage, desired.Usage, desired.Effect) error { return nil }

// grantedTo grants everything to some publishers.
func grantedTo(publishers ...string) desired.Grant {
	return func(publisher, owner string, at desired.Place) error {
		for _, p := range publishers {
			if p == publisher {
				return nil
			}
		}
		return errors.New(publisher + " has no grant for " + at.InTable() + " of " + owner)
	}
}

// adopted returns the state of another process that adopts what the kernel has.
func adopted(h *harness, r desired.Record) *merge.State {
	next := merge.New()
	adopt.Dump(next, h.k.dump(), r)
	return next
}

// ofOwner is what the owner has: one part of each kind.
func ofOwner() *desired.Update {
	return snapshot(owner, 0, in(ipWeft, regular("c", rule("first")), addrSet("s", member("10.0.0.1")), verdictMap("m", leads("10.0.0.1", "c")),
		declared("counter n", ""), flowtable("fast")))
}

func TestSharingNeedsAGrant(t *testing.T) {
	for what, tt := range map[string]struct {
		update *desired.Update
		want   string
	}{
		"rules":            {snapshot(guest, -9, in(ipWeft, regular("c", rule("evil")))), "chain c"},
		"elements":         {snapshot(guest, -9, in(ipWeft, addrSet("s", member("10.0.0.2")))), "set s"},
		"a key":            {snapshot(guest, -9, in(ipWeft, verdictMap("m"))), "set m"},
		"an object":        {snapshot(guest, -9, in(ipWeft, declared("counter n", ""))), "counter n"},
		"a flowtable":      {snapshot(guest, -9, in(ipWeft, flowtable("fast"))), "flowtable fast"},
		"a jump":           {snapshot(guest, 0, in(ipWeft, regular("mine", rule("jump", "c")))), "chain c"},
		"a lookup":         {snapshot(guest, 0, in(ipWeft, regular("mine", rule("lookup", "@s")))), "set s"},
		"a quota":          {snapshot(guest, 0, in(ipWeft, regular("mine", rule("count", "#counter n")))), "counter n"},
		"a verdict":        {snapshot(guest, 0, in(ipWeft, verdictMap("mine", leads("10.0.0.9", "c")))), "chain c"},
		"the flag dormant": {snapshot(guest, 0, desired.TableUpdate{Table: ipWeft, Dormant: true}), ""},
	} {
		t.Run(what, func(t *testing.T) {
			h := newHarness(t)
			h.commit(ofOwner())
			before := stateText(h.State)
			err := h.ApplyWithin(tt.update, unlimited, grantedTo())
			var r *desired.Rejection
			if !errors.As(err, &r) || r.Violations[0].Reason != desired.ReasonPermission || r.Violations[0].Err == nil ||
				!strings.Contains(r.Violations[0].Message, "guest has no grant for "+tt.want+" of owner") {
				t.Fatalf("without a grant: %v", err)
			}
			if !slices.ContainsFunc(merge.PartsOf(&tt.update.Tables[0]), func(at desired.Place) bool { return at.Table == ipWeft && at.InTable() == tt.want }) {
				t.Errorf("Parts %v lack what needs the grant", merge.PartsOf(&tt.update.Tables[0]))
			}
			same(t, "the state after a refused update", stateText(h.State), before)
			must(t, h.ApplyWithin(tt.update, unlimited, grantedTo("guest")))
			h.Rollback()
			must(t, h.Apply(tt.update))
		})
	}
}

// TestOwnersAreNotDisplaced has a guest with an earlier place in the merge, and one that
// comes first.
func TestOwnersAreNotDisplaced(t *testing.T) {
	grants := grantedTo("guest")
	h := newHarness(t)
	apply := func(u *desired.Update) error {
		err := h.ApplyWithin(u, unlimited, grants)
		planner.Make(h.State)
		planner.Accept(h.State)
		return err
	}
	join := snapshot(guest, -9, in(ipWeft, addrSet("s", member("10.0.0.2"))))
	for _, u := range []*desired.Update{join, ofOwner(), join, ofOwner(), snapshot(owner, 0), join, ofOwner()} {
		must(t, apply(u))
	}
	stranger := desired.Key{"stranger", "f"}
	if err := apply(snapshot(stranger, -99, in(ipWeft, addrSet("s")))); err == nil || !strings.Contains(err.Error(), "of owner") {
		t.Errorf("a stranger: %v", err)
	}
	// The grant is revoked: what is there stays, and cannot be changed.
	grants = grantedTo()
	for _, u := range []*desired.Update{join, patch(guest, in(ipWeft, desired.Elements{Set: "s", Add: []nftset.Element{member("10.0.0.3")}}))} {
		if err := apply(u); err == nil {
			t.Errorf("after its grant was revoked, the guest may change the set")
		}
	}
	must(t, apply(ofOwner()))
	// The owner leaves: the set is the guest's.
	must(t, apply(snapshot(owner, 0)))
	must(t, apply(join))
}

// TestOwnersSurviveRestarts adopts a set that two publishers share. The second one comes
// first in the order of the merge.
func TestOwnersSurviveRestarts(t *testing.T) {
	h := newHarness(t)
	for _, u := range []*desired.Update{ofOwner(), snapshot(guest, -9, in(ipWeft, addrSet("s", member("10.0.0.2"))))} {
		must(t, h.ApplyWithin(u, unlimited, grantedTo("guest")))
		h.commit()
	}
	text, err := json.Marshal(views.Record(h.State))
	must(t, err)
	var record desired.Record
	must(t, json.Unmarshal(text, &record))
	next := adopted(h, record)
	must(t, next.ApplyWithin(ofOwner(), unlimited, grantedTo()))
	if err := next.ApplyWithin(snapshot(guest, -9, in(ipWeft, addrSet("s", member("10.0.0.2")))), unlimited, grantedTo()); err == nil {
		t.Error("the guest is the owner after a restart")
	}
}

// TestDormantAlone has a publisher without a grant make its table dormant before another
// publisher comes.
func TestDormantAlone(t *testing.T) {
	h := newHarness(t)
	asleep := snapshot(guest, 0, desired.TableUpdate{Table: ipWeft, Dormant: true, PutChains: []desired.Chain{base("input", 0)}})
	must(t, h.ApplyWithin(asleep, unlimited, grantedTo()))
	h.commit()
	if st := h.Tables[ipWeft]; !st.Dormant() {
		t.Error("the table of one publisher is awake")
	}
	must(t, h.ApplyWithin(snapshot(owner, 0, in(ipWeft, base("forward", 0))), unlimited, grantedTo()))
	h.commit()
	if st := h.Tables[ipWeft]; st.Dormant() {
		t.Error("the chains of another publisher are off their hooks")
	}
	if err := h.ApplyWithin(asleep, unlimited, grantedTo()); err == nil {
		t.Error("the flag is accepted beside another publisher")
	}
	if adopted(h, views.Record(h.State)).Tables[ipWeft].Dormant() {
		t.Error("the table is dormant after a restart")
	}
	// Where the other agrees, or is gone, the flag has its effect.
	h.commit(snapshot(owner, 0))
	if !h.Tables[ipWeft].Dormant() {
		t.Error("the table is awake though the other publisher is gone")
	}
}
