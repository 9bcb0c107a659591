package desired_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/adopt"
	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/aggregator/desired/planner"
	"github.com/weft-proxy/weft/aggregator/desired/views"
	nftset "github.com/weft-proxy/weft/nft/set"
)

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
			if after := stateText(h.State); after != before {
				t.Errorf("a refused update changed the state:\n%s\nwas\n%s", after, before)
			}
			if err := h.ApplyWithin(tt.update, unlimited, grantedTo("guest")); err != nil {
				t.Errorf("with a grant: %v", err)
			}
			h.Rollback()
			if err := h.Apply(tt.update); err != nil {
				t.Errorf("without a configuration: %v", err)
			}
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
		if err := apply(u); err != nil {
			t.Fatal(err)
		}
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
	if err := apply(ofOwner()); err != nil {
		t.Errorf("the owner: %v", err)
	}
	// The owner leaves: the set is the guest's.
	if err := apply(snapshot(owner, 0)); err != nil {
		t.Fatal(err)
	}
	if err := apply(join); err != nil {
		t.Errorf("the new owner: %v", err)
	}
}

// TestOwnersSurviveRestarts adopts a set that two publishers share. The second one comes
// first in the order of the merge.
func TestOwnersSurviveRestarts(t *testing.T) {
	h := newHarness(t)
	for _, u := range []*desired.Update{ofOwner(), snapshot(guest, -9, in(ipWeft, addrSet("s", member("10.0.0.2"))))} {
		if err := h.ApplyWithin(u, unlimited, grantedTo("guest")); err != nil {
			t.Fatal(err)
		}
		h.commit()
	}
	text, err := json.Marshal(views.Record(h.State))
	if err != nil {
		t.Fatal(err)
	}
	var record desired.Record
	if err := json.Unmarshal(text, &record); err != nil {
		t.Fatal(err)
	}
	next := adopted(h, record)
	if err := next.ApplyWithin(ofOwner(), unlimited, grantedTo()); err != nil {
		t.Errorf("the owner after a restart: %v", err)
	}
	if err := next.ApplyWithin(snapshot(guest, -9, in(ipWeft, addrSet("s", member("10.0.0.2")))), unlimited, grantedTo()); err == nil {
		t.Error("the guest is the owner after a restart")
	}
}

// TestDormantAlone has a publisher without a grant make its table dormant before another
// publisher comes.
func TestDormantAlone(t *testing.T) {
	h := newHarness(t)
	asleep := snapshot(guest, 0, desired.TableUpdate{Table: ipWeft, Dormant: true, PutChains: []desired.Chain{base("input", 0)}})
	if err := h.ApplyWithin(asleep, unlimited, grantedTo()); err != nil {
		t.Fatal(err)
	}
	h.commit()
	if st := h.Tables[ipWeft]; !st.Dormant() {
		t.Error("the table of one publisher is awake")
	}
	if err := h.ApplyWithin(snapshot(owner, 0, in(ipWeft, base("forward", 0))), unlimited, grantedTo()); err != nil {
		t.Fatal(err)
	}
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
