package render

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/testing/publishtest"
)

// assign places endpoints, given in sorted order, with as few moves from old as
// possible: whatever can stay stays, the others fill the gaps in their order.
// Those that get new flows come first, then those that drain. The result depends
// only on the arguments. Pools must do the same.
func assign(old []netip.AddrPort, active, draining model.Endpoints) []netip.AddrPort {
	n := active.Len()
	out := make([]netip.AddrPort, n+draining.Len())
	setSlots(out[:n], old[:min(n, len(old))], active)
	setSlots(out[n:], old[min(n, len(old)):], draining)
	return out
}

// setSlots places endpoints in to, which has room for exactly those; old is what
// the slots held.
func setSlots(to, old []netip.AddrPort, in model.Endpoints) {
	placed := make(map[netip.AddrPort]bool, in.Len())
	for e := range in.All() {
		placed[e.Addr] = false
	}
	for i := range min(len(old), len(to)) {
		if was, wanted := placed[old[i]]; wanted && !was {
			to[i], placed[old[i]] = old[i], true
		}
	}
	next := 0
	for e := range in.All() {
		if placed[e.Addr] {
			continue
		}
		for to[next].IsValid() {
			next++
		}
		to[next] = e.Addr
	}
}

// endpointsIn returns what is in slots.
func endpointsIn(s *slots) (out []netip.AddrPort) {
	for i := range s.len() {
		out = append(out, s.at(i))
	}
	return out
}

// many returns each of n endpoints with the chance of keep in a hundred.
func many(rng *rand.Rand, f model.Family, n, keep int) (out []model.Endpoint) {
	for i := range n {
		if rng.IntN(100) >= keep {
			continue
		}
		a := netip.AddrFrom4([4]byte{10, 244, byte(i >> 8), byte(i)})
		if f == model.IPv6 {
			a = netip.AddrFrom16([16]byte{0: 0xfd, 14: byte(i >> 8), 15: byte(i)})
		}
		out = append(out, model.Endpoint{Addr: netip.AddrPortFrom(a, uint16(8080+i%2)), Local: i%3 == 0})
	}
	return out
}

// TestReviseIsAssign: a revised pool has the slots of assign, and so has a new one with
// a predecessor's slots. revise returns the changed slots, and all endpoints are found;
// at all sizes, and from one list to the other.
func TestReviseIsAssign(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 7))
		f, protocol := model.Family(seed%2), []model.Protocol{model.TCP, model.UDP}[seed/2%2]
		n := []int{5, 70, 300}[seed%3]
		random := func() *model.Backends {
			b := &model.Backends{Cluster: model.MakeEndpoints(many(rng, f, n, rng.IntN(101))...)}
			b.Local = model.MakeEndpoints(many(rng, f, n, rng.IntN(40))...)
			b.Draining = without(model.MakeEndpoints(many(rng, f, n, rng.IntN(101))...), func(e model.Endpoint) bool { return b.Cluster.Has(e.Addr) })
			if rng.IntN(3) == 0 {
				b.Local = model.Endpoints{}
			}
			return b
		}
		b := random()
		p := newPool(f, protocol, byCluster, b, nil)
		for step := range 60 {
			old := endpointsIn(&p.slots)
			l := p.list
			switch rng.IntN(6) {
			case 0:
				b = random()
			case 1:
				l = list(rng.IntN(int(numLists)))
			default:
				// One comes or goes.
				next := *b
				ep := many(rng, f, n, 100)[rng.IntN(n)]
				of := []*model.Endpoints{&next.Cluster, &next.Local, &next.Draining}[rng.IntN(3)]
				if had := *of; had.Has(ep.Addr) {
					*of = without(had, func(e model.Endpoint) bool { return e.Addr == ep.Addr })
				} else {
					*of = model.MakeEndpoints(append(slices.Collect(had.All()), ep)...)
				}
				b = &next
			}
			changed, _ := p.revise(l, b, p.differing(l, b))
			got, want := endpointsIn(&p.slots), assign(old, l.of(b), p.draining())
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d step %d: from %v: revised to %v, assigned %v", seed, step, old, got, want)
			}
			if again := assign(got, l.of(b), p.draining()); !slices.Equal(again, got) {
				t.Fatalf("seed %d step %d: from %v: again %v", seed, step, got, again)
			}
			var previousSlots []byte
			for i, ep := range old {
				previousSlots = putPacked(previousSlots, i, ep)
			}
			if restored := endpointsIn(&newPool(f, protocol, l, b, previousSlots).slots); !slices.Equal(restored, want) {
				t.Fatalf("seed %d step %d: from %v: restored to %v, assigned %v", seed, step, old, restored, want)
			}
			if p.active != l.of(b).Len() {
				t.Fatalf("seed %d step %d: %d active, want %d", seed, step, p.active, l.of(b).Len())
			}
			var differ []int
			for i := range got {
				if i >= len(old) || old[i] != got[i] {
					differ = append(differ, i)
				}
				if slot := p.slots.find(got[i]); slot != i {
					t.Fatalf("seed %d step %d: %s is in slot %d, found in %d", seed, step, got[i], i, slot)
				}
			}
			for _, i := range differ {
				if _, told := slices.BinarySearch(changed, i); !told {
					t.Fatalf("seed %d step %d: slot %d differs, told %v", seed, step, i, changed)
				}
			}
			if len(changed) != len(differ) {
				t.Fatalf("seed %d step %d: slots %v differ, told %v", seed, step, differ, changed)
			}
			for _, ep := range old {
				if slot := p.slots.find(ep); slot >= 0 && got[slot] != ep {
					t.Fatalf("seed %d step %d: %s, which left, is found in slot %d", seed, step, ep, slot)
				}
			}
		}
	}
}

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
				publishtest.Equal(t, fmt.Sprintf("%s: work among 100 Services and among 10,000", c.name), few[i], many[i])
				t.Logf("%s: %d units of 1,000 endpoints, %d of 100,000", c.name, small[i], large[i])
				if large[i] > 2*small[i] || large[i] > 100 {
					t.Errorf("%s: %d units of 1,000 endpoints, %d of 100,000: want as many", c.name, small[i], large[i])
				}
			}
		})
	}
}
