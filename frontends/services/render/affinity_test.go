package render

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/testing/publishtest"
)

// TestAffinityNames: names fit, tell the port, and differ.
//
// Behaviour: 168.
func TestAffinityNames(t *testing.T) {
	seen := make(map[string]string)
	for _, n := range []int{1, 63, 253} {
		for _, last := range []string{"a", "b"} {
			for _, of := range []struct{ ns, name, port string }{
				{strings.Repeat("n", n-1) + last, "s", "p"}, {"n", strings.Repeat("s", n) + last, "p"}, {"n", "s", strings.Repeat("p", n) + last},
				{strings.Repeat("n", n), strings.Repeat("s", n), strings.Repeat("p", 14) + last},
			} {
				a := &affinity{family: model.IPv6, name: affinityName(model.Key{Namespace: of.ns, Name: of.name}, &model.Port{Name: of.port, Protocol: model.SCTP})}
				whose := of.ns + "/" + of.name + "/" + of.port
				names := []string{rememberPrefix + a.name}
				for l := range numLists {
					names = append(names, a.mapName(l), a.setName(l))
				}
				for _, prefixes := range recallNames {
					for _, prefix := range prefixes {
						names = append(names, prefix+a.name)
					}
				}
				for _, name := range names {
					if len(name) > maxName {
						t.Errorf("name %q has %d bytes", name, len(name))
					}
					if before, ok := seen[name]; ok && before != whose {
						t.Errorf("name %q is that of %s and of %s", name, before, whose)
					}
					seen[name] = whose
					if port, ok := portObject(name); !ok || port != a.name {
						t.Errorf("%q is of the port %q, %t", name, port, ok)
					}
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
		for _, m := range append(tp.GetPutMaps(), tp.GetPutSets()...) {
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
	http := affinityName(model.Key{Namespace: "default", Name: "web"}, &model.Port{Name: "http", Protocol: model.TCP})
	for _, tt := range []struct {
		name           string
		to             *model.Service
		added, removed int
		put            int
		idle           []string
	}{
		{"nothing", web(hour, eps...), 0, 0, 0, nil},
		{"another timeout", web(2*hour, eps...), 0, 0, 1, nil},
		// A slot of each listener, and the endpoint that may be remembered.
		{"replaced", web(hour, eps[0], eps[1], "10.244.1.9:80"), 3, 1, 0, nil},
		{"one less", web(hour, eps[:2]...), 0, 3, 4, []string{"nodeport-sticky-3", "sticky-3"}},
		{"off", web(0, eps...), 2, 2, 7, []string{"remember-" + http, "nodeport-recall-" + http, "recall-" + http, "nodeport-sticky-3", "sticky-3"}},
		{"gone", nil, 0, 0, 5, []string{"remember-" + http, "nodeport-recall-" + http, "recall-" + http, "nodeport-sticky-3", "sticky-3"}},
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
			publishtest.Equal(t, fmt.Sprintf("swept %v, want %v", names(swept), tt.idle), len(names(swept)), len(tt.idle))
			rules.equals(t, r, tt.name)
		})
	}
}
