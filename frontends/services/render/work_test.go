package render

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/weft-proxy/weft/frontends/services/model"
)

// endpoint returns the i-th of a Service's endpoints; each seventh is on this node.
func endpoint(of, i int) model.Endpoint {
	n := of*10 + i
	return model.Endpoint{
		Addr:  netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(128 + n>>16), byte(n >> 8), byte(n)}), 8080),
		Local: i%7 == 0,
	}
}

// kindsOfService are Services that are rendered in different ways.
var kindsOfService = map[string]func(of int, eps []model.Endpoint) *model.Service{
	"cluster": func(of int, eps []model.Endpoint) *model.Service { return plain(of, "tcp", eps) },
	"local": func(of int, eps []model.Endpoint) *model.Service {
		return local(reach(plain(of, "tcp", eps), fmt.Sprintf("203.0.%d.%d", of>>8, of&255)), of%2 == 0, true)
	},
	"udp": func(of int, eps []model.Endpoint) *model.Service {
		s := local(plain(of, "udp", eps), true, true)
		s.Ports[0].Backends[model.IPv4].Draining = endpointsOf("10.1.0.1:8080", "10.1.0.2:8080")
		return s
	},
	"sticky": func(of int, eps []model.Endpoint) *model.Service {
		return withAffinity(local(plain(of, "tcp", eps), false, true), time.Hour)
	},
}

// plain returns the Service of a number, with a NodePort.
func plain(of int, protocol string, eps []model.Endpoint) *model.Service {
	p := port(fmt.Sprintf("http %s 80 %d", protocol, 30000+of))
	p.Backends[model.IPv4].Cluster = model.MakeEndpoints(eps...)
	return service(fmt.Sprintf("default/s%d", of), fmt.Sprintf("10.96.%d.%d", of>>8, of&255), p)
}

// filled returns a renderer of Services with n endpoints each.
func filled(t testing.TB, kind string, services, n int) *Renderer {
	r := mustNew(t, testConfig())
	var all []model.Change
	for of := range services {
		all = append(all, put(kindsOfService[kind](of, some(of, n)))...)
	}
	r.Load(model.Changes{Services: all})
	return r
}

// some returns the first n endpoints of a Service.
func some(of, n int) []model.Endpoint {
	out := make([]model.Endpoint, n)
	for i := range out {
		out[i] = endpoint(of, i)
	}
	return out
}

// TestWork counts what a changed endpoint makes the renderer look at: the same however
// many Services there are, and however many endpoints the Service has. Scans of packed bytes
// do not count.
func TestWork(t *testing.T) {
	changes := []struct {
		name  string
		apply func(eps []model.Endpoint, other model.Endpoint) []model.Endpoint
	}{
		{"replaced", func(eps []model.Endpoint, other model.Endpoint) []model.Endpoint {
			eps[len(eps)/2] = other
			return eps
		}},
		{"added", func(eps []model.Endpoint, other model.Endpoint) []model.Endpoint { return append(eps, other) }},
		{"removed", func(eps []model.Endpoint, _ model.Endpoint) []model.Endpoint {
			return slices.Delete(eps, len(eps)/2, len(eps)/2+1)
		}},
	}
	for kind, newService := range kindsOfService {
		t.Run(kind, func(t *testing.T) {
			// work returns the units of each change of the last Service.
			work := func(services, n int) (out []uint64) {
				r, of := filled(t, kind, services, n), services-1
				for _, c := range changes {
					before := r.Work()
					if u := r.Update(model.Changes{Services: put(newService(of, c.apply(some(of, n), endpoint(of, n))))}); u.Empty() {
						t.Fatalf("%s: nothing changed", c.name)
					}
					out = append(out, r.Work()-before)
					r.Load(model.Changes{Services: put(newService(of, some(of, n)))})
				}
				return out
			}
			few, many := work(100, 10), work(10_000, 10)
			small, large := work(1, 1_000), work(1, 100_000)
			for i, c := range changes {
				if few[i] != many[i] {
					t.Errorf("%s: %d units among 100 Services, %d among 10,000", c.name, few[i], many[i])
				}
				t.Logf("%s: %d units of 1,000 endpoints, %d of 100,000", c.name, small[i], large[i])
				if large[i] > 2*small[i] || large[i] > 100 {
					t.Errorf("%s: %d units of 1,000 endpoints, %d of 100,000: want as many", c.name, small[i], large[i])
				}
			}
		})
	}
}
