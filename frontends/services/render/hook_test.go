package render

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/frontends/services/model"
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
	if n != 2 {
		t.Errorf("%d chains on hooks, want 2", n)
	}
}
