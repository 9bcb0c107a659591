package render

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/frontends/services/model"
)

// handOver has Services take each other's NodePorts and external addresses over, and gives some
// Services many ports.
func (w *world) handOver(changes []model.Change) {
	for _, c := range changes {
		if c.New == nil {
			continue
		}
		c.New.Ports = slices.DeleteFunc(c.New.Ports, func(p model.Port) bool { return p.Number >= 1000 })
		for i := range w.rng.IntN(2) * w.rng.IntN(30) {
			p := port(fmt.Sprintf("q%02d tcp %d 0", i, 1000+i))
			p.ClusterIPs = c.New.ClusterIPs
			p.Backends[model.IPv4].Cluster = w.endpoints(model.IPv4)
			c.New.Ports = append(c.New.Ports, p)
		}
		w.own(c.New)
		slices.SortFunc(c.New.Ports, func(a, b model.Port) int {
			return cmp.Or(strings.Compare(a.Name, b.Name), int(a.Protocol)-int(b.Protocol))
		})
	}
	// Each of these is at one Service.
	for i := range 6 {
		var owner *model.Port
		for _, s := range w.services {
			for j := range s.Ports {
				p := &s.Ports[j]
				if p.NodePort == uint16(31000+i) {
					p.NodePort = 0
				}
				p.External[model.IPv4] = slices.DeleteFunc(slices.Clone(p.External[model.IPv4]), func(e model.External) bool { return e.Addr == shared(i) })
				if p.Protocol == model.TCP && p.Number == 80 && w.chance(len(w.services)) {
					owner = p
				}
			}
		}
		if owner != nil {
			owner.NodePort = uint16(31000 + i)
			owner.External[model.IPv4] = append(slices.Clone(owner.External[model.IPv4]), model.External{Addr: shared(i)})
		}
	}
}

// own gives a Service endpoints that no other has: to replace a slot by the same is an error.
func (w *world) own(s *model.Service) {
	of := func(all model.Endpoints) model.Endpoints {
		var out []model.Endpoint
		for e := range all.All() {
			e.Addr = netip.AddrPortFrom(e.Addr.Addr(), uint16(100+s.ClusterIPs[model.IPv4].As4()[3]))
			out = append(out, e)
		}
		return model.MakeEndpoints(out...)
	}
	for i := range s.Ports {
		for f := range model.NumFamilies {
			b := &s.Ports[i].Backends[f]
			*b = model.Backends{Cluster: of(b.Cluster), Local: of(b.Local), Draining: of(b.Draining)}
		}
	}
}

// shared is an address that Services take over from each other.
func shared(i int) netip.Addr { return netip.AddrFrom4([4]byte{198, 51, 100, byte(i)}) }

// next makes every Service anew, and returns what changes.
func (w *world) next() []model.Change {
	before := maps.Clone(w.services)
	w.step()
	for name, s := range w.services {
		// The Services before stay as they are.
		s := *s
		s.Ports = slices.Clone(s.Ports)
		w.services[name] = &s
	}
	var out []model.Change
	for _, name := range slices.SortedFunc(maps.Keys(w.services), model.CompareKeys) {
		out = append(out, model.Change{Name: name, Old: before[name], New: w.services[name]})
		delete(before, name)
	}
	for name, s := range before {
		out = append(out, model.Change{Name: name, Old: s})
	}
	w.handOver(out)
	return out
}

// have returns the listeners of a ruleset.
func (r ruleset) have() map[string]bool {
	out := make(map[string]bool)
	for family, c := range r {
		for name, s := range c.sets {
			for k := range s.elements {
				if strings.HasSuffix(name, "services") || strings.HasSuffix(name, "nodeports") {
					out[family+" "+k] = true
				}
			}
		}
	}
	return out
}

// TestPortionsLeadToSnapshot: random changes of Services that hand listeners over to each other,
// in a random order, and each in steps: the result is that of one update, and the listeners
// that are there before and after are always there.
func TestPortionsLeadToSnapshot(t *testing.T) {
	testPortions(t, maxBundle)
}

// TestLargeBundles is the same, but ports that hand listeners over leave before others come: no update
// is much larger than it may be.
func TestLargeBundles(t *testing.T) { testPortions(t, 0) }

// TestSmallComesFirst: a small Service does not wait until very many ports that hand listeners over have
// left.
func TestSmallComesFirst(t *testing.T) {
	big := func(name string) *model.Service {
		return reach(service(name, "10.96.0.1", port("http tcp 80 0"), port("https tcp 443 0")), "198.51.100.1")
	}
	r := mustNew(t, testConfig())
	was, is, small := big("default/was"), big("default/is"), service("default/small", "10.96.0.2", port("http tcp 80 0"))
	r.Load(model.Changes{Services: []model.Change{{Name: was.Name, New: was}}})
	changes := []change{{Key: was.Name, Old: was}, {Key: is.Name, New: is}, {Key: small.Name, New: small}}
	now, later := r.divideWithin(changes, 1, 1)
	if len(now) != 1 || now[0].Key != small.Name || len(later) != 2 {
		t.Fatalf("first come %d changes, and %d later", len(now), len(later))
	}
	if now, _ = r.divideWithin(later, 1, 1); len(now) != 1 || now[0].Key != was.Name || now[0].New == nil || len(now[0].New.Ports) != 1 {
		t.Errorf("then leaves %+v", now)
	}
}

func testPortions(t *testing.T, largest int) {
	steps, portions := 0, 0
	for seed := range uint64(8) {
		w := &world{rng: rand.New(rand.NewPCG(seed, 5)), services: make(map[model.Key]*model.Service)}
		r := mustNew(t, testConfig())
		rules := load(t, r.Snapshot())
		for round := range 25 {
			when := fmt.Sprintf("seed %d round %d", seed, round)
			changes := w.next()
			before := rules.have()
			whole := mustNew(t, testConfig())
			whole.Load(model.Changes{Services: w.all()})
			after := load(t, whole.Snapshot()).have()
			pending := make([]change, len(changes))
			for i, c := range changes {
				pending[i] = change{Key: c.Name, Old: c.Old, New: c.New}
			}
			for len(pending) > 0 {
				w.rng.Shuffle(len(pending), func(i, j int) { pending[i], pending[j] = pending[j], pending[i] })
				most := 1 + w.rng.IntN(200)
				now, later := r.divideWithin(pending, most, largest)
				size, largestPort := 0, 0
				for _, c := range now {
					d := (&divider{Renderer: r}).divide(c)
					size += d.size - 1
					for _, p := range d.pieces {
						largestPort = max(largestPort, p.size)
					}
				}
				if largest == 0 && len(later) > 0 && size > most+largestPort {
					t.Errorf("%s: an update of at most %d has %d", when, most, size)
				}
				if len(now) == 0 {
					t.Fatalf("%s: of %d changes none is next", when, len(pending))
				}
				var portion []model.Change
				for _, c := range now {
					portion = append(portion, model.Change{Name: c.Key, Old: c.Old, New: c.New})
					if slices.ContainsFunc(later, func(o change) bool { return o.Key == c.Key }) {
						steps++
					}
				}
				if len(later) > 0 {
					portions++
				}
				pending = later
				rules.patch(t, r.Update(model.Changes{Services: portion}).Patch)
				has := rules.have()
				for k := range before {
					if largest > 0 && after[k] && !has[k] {
						t.Errorf("%s: %s is absent for a while", when, k)
					}
				}
			}
			rules.equalsRestarted(t, r, model.Changes{Services: w.all()}, when)
		}
	}
	if steps < 100 || portions < 100 {
		t.Errorf("%d steps in %d portions: the test is too small", steps, portions)
	}
}
