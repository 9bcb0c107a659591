package desired_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/views"
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
	if p := h.commit(snapshot(services, 0, in(ipWeft))); planText(p) != "add table weft\n" {
		t.Errorf("plan:\n%s", planText(p))
	}
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
