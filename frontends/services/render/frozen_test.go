package render

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/nametest"
	"github.com/weft-proxy/weft/frontends/services/model"
)

// tables returns the tables of a fragment by family.
func tables(f *weftv1.Fragment) map[string]*weftv1.Table {
	out := make(map[string]*weftv1.Table)
	for _, t := range f.GetTables() {
		out[t.GetFamily()] = t
	}
	return out
}

// TestFreeze: a frozen part stays as it was committed while the other one goes on, and
// has all changes once it is thawed.
func TestFreeze(t *testing.T) {
	r := mustNew(t, testConfig())
	change := func(eps ...string) *weftv1.Patch {
		return r.Update(model.Changes{Services: put(service("default/a", "10.96.0.1 fd00:10:96::1", port("x tcp 80 0", eps...)))}).Patch
	}
	change("10.244.1.1:80", "[fd00:10:244::1]:80")
	committed := r.Snapshot()
	part, ok := r.Part(nametest.Parse("element ip6 weft endpoints { fd00:10:96::1 . tcp . 80 . 0 }"))
	if !ok || part != "IPv6" {
		t.Fatalf("part %q, %t", part, ok)
	}
	if !r.Freeze(part, committed) {
		t.Error("no Service has an address of the frozen family")
	}
	patch := change("10.244.1.2:80", "[fd00:10:244::2]:80")
	if n := len(patch.GetTables()); n != 1 || patch.GetTables()[0].GetFamily() != "ip" {
		t.Errorf("patch of %d tables: %v", n, patch)
	}
	was, frozen := tables(committed), tables(r.Snapshot())
	if diff := cmp.Diff(was["ip6"], frozen["ip6"], protocmp.Transform()); diff != "" {
		t.Errorf("the frozen table changed (-committed +snapshot):\n%s", diff)
	}
	if cmp.Equal(was["ip"], frozen["ip"], protocmp.Transform()) {
		t.Error("the other table did not change")
	}
	// There was no such table, or the aggregator could not be asked.
	r.Freeze(part, nil)
	if got := tables(r.Snapshot()); got["ip6"] != nil || got["ip"] == nil {
		t.Errorf("snapshot has %d tables, want that of ip", len(got))
	}
	r.Thaw(part)
	again := mustNew(t, testConfig())
	again.Restore(answered(t, committed))
	again.Update(model.Changes{Services: []model.Change{{Name: model.Key{Namespace: "default", Name: "a"}, New: r.services[model.Key{Namespace: "default", Name: "a"}].service}}})
	if diff := cmp.Diff(load(t, again.Snapshot()).text(), load(t, r.Snapshot()).text()); diff != "" {
		t.Errorf("the thawed table lacks changes (-want +got):\n%s", diff)
	}
	if n := r.Services(); n != 1 {
		t.Errorf("%d Services, want 1", n)
	}
	r.Update(model.Changes{Services: gone("default/a")})
	if r.Freeze(part, committed) {
		t.Error("a Service has an address of the frozen family after all are gone")
	}
}

// TestPart: only the tables of the fragment are parts.
func TestPart(t *testing.T) {
	r := mustNew(t, testConfig())
	for object, want := range map[string]string{
		"table ip weft": "IPv4", "chain ip6 weft services": "IPv6", "table inet weft": "", "table ip other": "", "": "",
	} {
		if got, ok := r.Part(nametest.Parse(object)); got != want || ok != (want != "") {
			t.Errorf("part of %q is %q, %t, want %q", object, got, ok, want)
		}
	}
}
