package render

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/frontends/services/model"
)

// TestAffinityNames: names fit, say whose they are, and differ.
//
// Behaviour: 168.
func TestAffinityNames(t *testing.T) {
	ep := netip.MustParseAddrPort("[2001:db8:1111:2222:3333:4444:5555:6666]:65535")
	seen := make(map[string]string)
	for _, n := range []int{1, 63, 253} {
		for _, last := range []string{"a", "b"} {
			for _, of := range []struct{ ns, name, port string }{
				{strings.Repeat("n", n-1) + last, "s", "p"}, {"n", strings.Repeat("s", n) + last, "p"}, {"n", "s", strings.Repeat("p", n) + last},
				{strings.Repeat("n", n), strings.Repeat("s", n), strings.Repeat("p", 14) + last},
			} {
				a := &affinity{family: model.IPv6, name: affinityName(model.Key{Namespace: of.ns, Name: of.name}, &model.Port{Name: of.port, Protocol: model.SCTP})}
				whose := of.ns + "/" + of.name + "/" + of.port
				for l := range numLists {
					for _, name := range []string{a.mapName(l), rememberName(a.chainPrefix(l), ep)} {
						if len(name) > maxName {
							t.Errorf("name %q has %d bytes", name, len(name))
						}
						if before, ok := seen[name]; ok && before != whose {
							t.Errorf("name %q is that of %s and of %s", name, before, whose)
						}
						seen[name] = whose
					}
				}
				name := rememberName(a.chainPrefix(byLocal), ep)
				if got, ok := parseRemember("goto "+name, model.IPv6); n < 100 && (!ok || got != ep || !isRemember(name)) {
					t.Errorf("%q is of the endpoint %s, %t", name, got, ok)
				}
			}
		}
	}
}

// names returns what a patch puts, declares and deletes.
func names(p *weftv1.Patch) (out []string) {
	for _, tp := range p.GetTables() {
		for _, c := range tp.GetPutChains() {
			out = append(out, c.GetName())
		}
		for _, m := range tp.GetPutMaps() {
			out = append(out, m.GetName())
		}
		out = append(out, tp.GetDeleteChains()...)
		out = append(out, tp.GetDeleteSets()...)
	}
	return out
}

// TestAffinityPatches pins what a change of a Service with affinity costs.
//
// Behaviour: 82, 83.
func TestAffinityPatches(t *testing.T) {
	web := func(timeout time.Duration, eps ...string) *model.Service {
		return withAffinity(service("default/web", "10.96.0.1", port("http tcp 80 30080", eps...)), timeout)
	}
	eps := []string{"10.244.1.1:80*", "10.244.1.2:80", "10.244.1.3:80"}
	const hour = time.Hour
	for _, tt := range []struct {
		name           string
		to             *model.Service
		added, removed int
		put            int
		idle           []string
	}{
		{"nothing", web(hour, eps...), 0, 0, 0, nil},
		{"another timeout", web(2*hour, eps...), 0, 0, 3, nil},
		{"replaced", web(hour, eps[0], eps[1], "10.244.1.9:80"), 2, 0, 2, []string{"__10.244.1.3/80"}},
		{"one less", web(hour, eps[:2]...), 2, 2, 3, []string{"__10.244.1.3/80", "nodeport-sticky-3", "sticky-3"}},
		{"off", web(0, eps...), 2 + 6, 6, 5, []string{"__10.244.1.1/80", "__10.244.1.2/80", "__10.244.1.3/80", "nodeport-sticky-3", "sticky-3", "default/web/tcp/http"}},
		{"gone", nil, 0, 0, 3, []string{"__10.244.1.1/80", "__10.244.1.2/80", "__10.244.1.3/80", "nodeport-sticky-3", "sticky-3", "default/web/tcp/http"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := mustNew(t, testConfig())
			other := withAffinity(service("default/other", "10.96.0.2", port("http tcp 80 0", "10.244.1.1:80")), hour)
			r.Update(model.Changes{Services: append(put(other), put(web(hour, eps...))...)})
			rules := load(t, r.Snapshot())
			changes := gone("default/web")
			if tt.to != nil {
				changes = put(tt.to)
			}
			u := r.Update(model.Changes{Services: changes})
			if tt.to != nil && (u.Added != tt.added || u.Removed != tt.removed) {
				t.Errorf("%d elements added, %d removed, want %d, %d", u.Added, u.Removed, tt.added, tt.removed)
			}
			got := names(u.Patch)
			if len(got) != tt.put || slices.ContainsFunc(got, func(n string) bool { return strings.Contains(n, "other") }) {
				t.Errorf("%d objects, want %d: %v", len(got), tt.put, got)
			}
			rules.patch(t, u.Patch)
			swept := r.Cleanup()
			rules.patch(t, swept)
			for _, want := range tt.idle {
				if !slices.ContainsFunc(names(swept), func(n string) bool { return strings.HasSuffix(n, want) }) {
					t.Errorf("%s is not swept: %v", want, names(swept))
				}
			}
			if len(names(swept)) != len(tt.idle) {
				t.Errorf("swept %v, want %v", names(swept), tt.idle)
			}
			if diff := cmp.Diff(load(t, r.Snapshot()).text(), rules.text()); diff != "" {
				t.Errorf("snapshot and patches differ:\n%s", diff)
			}
		})
	}
}
