package render

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/nametest"
	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/testing/publishtest"
)

// hooks returns the chains of the IPv4 table that the kernel calls, sorted.
func (r ruleset) hooks() (out []string) {
	for name, c := range r["ip"].chains {
		if c.GetHook() != "" {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// TestHooksOnDemand: chains on hooks come in the patch with the first element that
// they look up, stay after the last one, and go with Cleanup. A restart and a snapshot
// do not matter.
func TestHooksOnDemand(t *testing.T) {
	always := []string{"filter-forward", "filter-output", "nat-output", "nat-postrouting", "nat-prerouting"}
	firewall := []string{"firewall-output", "firewall-prerouting"}
	input := []string{"filter-input"}
	web := func(sources ...string) *model.Service {
		s := reach(service("default/web", "10.96.0.1", port("http tcp 80 30080", "10.244.1.1:80")), "198.51.100.1*")
		if len(sources) > 0 {
			return limit(s, sources...)
		}
		return s
	}
	other := limit(reach(service("default/other", "10.96.0.2", port("http tcp 80 0", "10.244.1.2:80")), "198.51.100.2*"), "192.0.2.0/24")
	empty := service("default/web", "10.96.0.1", port("http tcp 80 0"))
	r := mustNew(t, testConfig())
	rules := load(t, r.Snapshot())
	now := make(map[model.Key]*model.Service)
	for _, step := range []struct {
		name    string
		changes []model.Change
		sweep   bool
		// put are the chains on hooks in the patch, more the optional ones in force after it.
		put, more []string
	}{
		{name: "no source ranges", changes: put(web())},
		{name: "source ranges", changes: put(web("192.0.2.0/24")), put: firewall, more: firewall},
		{name: "others", changes: put(web("192.0.2.0/25")), more: firewall},
		{name: "a second Service", changes: put(other), more: firewall},
		{name: "only the second Service", changes: put(web()), more: firewall},
		{name: "nothing to sweep", sweep: true, more: firewall},
		{name: "none", changes: gone("default/other"), more: firewall},
		{name: "again before the sweep", changes: put(other), more: firewall},
		{name: "none again", changes: gone("default/other"), more: firewall},
		{name: "swept", sweep: true},
		{name: "once more", changes: put(other), put: firewall, more: firewall},
		{name: "no endpoints", changes: put(empty), put: input, more: append(input, firewall...)},
		{name: "endpoints", changes: put(web()), more: append(input, firewall...)},
		{name: "swept again", sweep: true, more: firewall},
	} {
		var patch *weftv1.Patch
		if step.sweep {
			patch = r.Cleanup()
		} else {
			patch = r.Update(model.Changes{Services: step.changes}).Patch
			for _, c := range step.changes {
				now[c.Name] = c.New
			}
		}
		rules.patch(t, patch)
		var hooks []string
		for _, tp := range patch.GetTables() {
			for _, c := range tp.GetPutChains() {
				if c.GetHook() != "" {
					hooks = append(hooks, c.GetName())
				}
			}
		}
		slices.Sort(hooks)
		if diff := cmp.Diff(step.put, hooks); diff != "" {
			t.Errorf("%s: the patch puts other chains on hooks (-want +got):\n%s", step.name, diff)
		}
		if diff := cmp.Diff(slices.Sorted(slices.Values(append(step.more, always...))), rules.hooks()); diff != "" {
			t.Errorf("%s: other chains on hooks (-want +got):\n%s", step.name, diff)
		}
		rules.equals(t, r, step.name)
		again := mustNew(t, r.cfg)
		again.Restore(answered(t, r.Snapshot()))
		for name, s := range now {
			again.Load(model.Changes{Services: []model.Change{{Name: name, New: s}}})
		}
		if diff := cmp.Diff(rules.hooks(), load(t, again.Snapshot()).hooks()); diff != "" {
			t.Errorf("%s: a restart changes what is there (-before +after):\n%s", step.name, diff)
		}
	}
}

// TestRestoreHalfOfHooks: a predecessor's chain alone is not taken for all that a role
// needs.
func TestRestoreHalfOfHooks(t *testing.T) {
	r := mustNew(t, testConfig())
	r.Restore(&weftv1.Fragment{Tables: []*weftv1.Table{{Family: "ip", Name: Table, Chains: []*weftv1.Chain{{Name: "firewall-output"}}}}})
	u := r.Update(model.Changes{Services: put(limit(reach(service("default/web", "10.96.0.1",
		port("http tcp 80 0", "10.244.1.1:80")), "198.51.100.1*"), "192.0.2.0/24"))})
	n := 0
	for _, c := range u.Patch.GetTables()[0].GetPutChains() {
		if c.GetHook() != "" {
			n++
		}
	}
	publishtest.Equal(t, "chains on hooks", n, 2)
}

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
	publishtest.Equal(t, "Services", r.Services(), 1)
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
