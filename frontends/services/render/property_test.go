package render

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/frontends/services/model"
)

// world makes random changes of a small model, in which every address is used
// by at most one Service at a time.
type world struct {
	rng      *rand.Rand
	services map[model.Key]*model.Service
	cidrs    model.Prefixes
}

// chance is true once in n times.
func (w *world) chance(n int) bool { return w.rng.IntN(n) == 0 }

func (w *world) endpoints(f model.Family) model.Endpoints {
	var out []model.Endpoint
	for i := range 6 {
		if w.chance(2) {
			continue
		}
		text := fmt.Sprintf("10.244.0.%d:80", i+1)
		if f == model.IPv6 {
			text = fmt.Sprintf("[fd00:10:244::%d]:80", i+1)
		}
		out = append(out, model.Endpoint{Addr: netip.MustParseAddrPort(text), Local: i%2 == 0})
	}
	return model.MakeEndpoints(out...)
}

// sources are random source ranges, some of which contain others.
func (w *world) sources(f model.Family) (out []netip.Prefix) {
	for _, text := range [2][]string{
		{"192.0.2.0/24", "192.0.2.0/25", "192.0.2.7/32", "198.51.100.0/24", "0.0.0.0/1"},
		{"2001:db8::/32", "2001:db8::/64", "2001:db8::1/128", "fd00::/8"},
	}[f] {
		if w.chance(2) {
			out = append(out, netip.MustParsePrefix(text))
		}
	}
	return out
}

func (w *world) service(i int) *model.Service {
	ips := fmt.Sprintf("10.96.0.%d", i+1)
	if !w.chance(3) {
		ips += fmt.Sprintf(" fd00:10:96::%d", i+1)
	}
	var ports []model.Port
	for j := range 1 + w.rng.IntN(2) {
		// Sometimes a port is renamed.
		spec := fmt.Sprintf("p%d %s %d %d", j+10*w.rng.IntN(2), []string{"tcp", "udp"}[j], 80+j, w.rng.IntN(2)*(30000+2*i+j))
		ports = append(ports, port(spec))
	}
	s := service(fmt.Sprintf("default/s%d", i), ips, ports...)
	for k := range 3 {
		if w.chance(2) {
			reach(s, fmt.Sprintf("203.0.113.%d%s", 3*i+k, []string{"", "*"}[k%2]), fmt.Sprintf("2001:db8:1::%d%s", 3*i+k+1, []string{"", "*"}[k%2]))
		}
	}
	s.InternalLocal, s.ExternalLocal = w.chance(3), w.chance(3)
	s.Affinity = time.Duration(max(0, w.rng.IntN(4)-1)) * time.Hour
	for f := range model.NumFamilies {
		if w.chance(3) {
			s.SourceRanges[f] = append([]netip.Prefix{}, w.sources(f)...)
		}
	}
	for j := range s.Ports {
		p := &s.Ports[j]
		if w.chance(5) {
			// Another Service has the claim.
			p.ClusterIPs[w.rng.IntN(2)] = netip.Addr{}
		}
		for f := range model.NumFamilies {
			b := &p.Backends[f]
			b.Cluster = w.endpoints(f)
			if s.InternalLocal || s.ExternalLocal {
				b.Local = without(w.endpoints(f), func(e model.Endpoint) bool { return !e.Local })
			}
			if p.Protocol == model.UDP {
				b.Draining = without(w.endpoints(f), func(e model.Endpoint) bool { return b.Cluster.Has(e.Addr) })
			}
		}
	}
	return s
}

// change is a random change: Services, sometimes the node and the ServiceCIDRs.
func (w *world) change() model.Changes {
	out := model.Changes{Services: w.step()}
	if w.chance(5) {
		out.Node = nodeOf([][]string{{"192.0.2.1"}, {"192.0.2.2", "2001:db8::1"}, {"2001:db8::2"}, {}}[w.rng.IntN(4)]...)
		out.Node.PodCIDRs = *cidrs(fmt.Sprintf("10.244.%d.0/24", w.rng.IntN(3)), "fd00:10:244::/64")
	}
	if w.chance(5) {
		w.cidrs = *cidrs("10.96.0.0/16", fmt.Sprintf("10.%d.0.0/16", 97+w.rng.IntN(2)), fmt.Sprintf("fd00:10:96::/%d", 100+w.rng.IntN(4)))
		out.ServiceCIDRs = &w.cidrs
	}
	return out
}

// step changes one to three Services.
func (w *world) step() []model.Change {
	var out []model.Change
	for range 1 + w.rng.IntN(3) {
		i := w.rng.IntN(5)
		s := w.service(i)
		name := s.Name
		if slices.ContainsFunc(out, func(c model.Change) bool { return c.Name == name }) {
			continue
		}
		old := w.services[name]
		if old != nil && w.rng.IntN(4) == 0 {
			s = nil
			delete(w.services, name)
		} else {
			w.services[name] = s
		}
		out = append(out, model.Change{Name: name, Old: old, New: s})
	}
	return out
}

func (w *world) all() []model.Change {
	var out []model.Change
	for _, s := range w.services {
		out = append(out, model.Change{Name: s.Name, New: s})
	}
	return out
}

// TestPatchesLeadToSnapshot: patches and snapshot are the same at every step, and a repeated change is nothing;
// what a restarted renderer makes from the same model and the earlier fragment
// is the same again; and without that fragment it depends on the model alone.
func TestPatchesLeadToSnapshot(t *testing.T) {
	for seed := range uint64(16) {
		w := &world{rng: rand.New(rand.NewPCG(seed, 1)), services: make(map[model.Key]*model.Service)}
		cfg := testConfig()
		cfg.Counters = CountEndpoints
		if seed%3 == 0 {
			cfg.Detect.Mode = DetectNode
		}
		r := mustNew(t, cfg)
		rules := load(t, r.Snapshot())
		for step := range 40 {
			when := fmt.Sprintf("seed %d step %d", seed, step)
			changes := w.change()
			u := r.Update(changes)
			if u.Snapshot {
				t.Fatalf("%s: snapshot where a patch does", when)
			}
			rules.patch(t, u.Patch)
			if u := r.Update(changes); !u.Empty() {
				t.Fatalf("%s: the same again gives %v", when, u.Patch)
			}
			if w.chance(3) {
				rules.patch(t, r.Cleanup())
			}
			if n := rules.slots(); r.Elements() != n {
				t.Fatalf("%s: %d slots are filled, %d are told", when, n, r.Elements())
			}
			if step%10 != 9 {
				rules.equals(t, r, when)
				continue
			}
			rules.equalsRestarted(t, r, model.Changes{Services: w.all(), Node: &r.node, ServiceCIDRs: &w.cidrs}, when)
			texts := make([]string, 2)
			for i := range texts {
				fresh := mustNew(t, cfg)
				fresh.Update(model.Changes{Services: w.all(), Node: &r.node, ServiceCIDRs: &w.cidrs})
				texts[i] = load(t, fresh.Snapshot()).text()
			}
			if texts[0] != texts[1] {
				t.Fatalf("%s: a fresh start depends on the order", when)
			}
		}
	}
}

// TestPatchesOfLargeServices: the same with lists of endpoints that are long enough to
// have an index, of which few change at a time, and with a Service that now and then
// becomes one of another kind.
func TestPatchesOfLargeServices(t *testing.T) {
	kinds := slices.Sorted(maps.Keys(kindsOfService))
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, 3))
		eps := some(1, 200)
		kind := kinds[rng.IntN(len(kinds))]
		r := mustNew(t, testConfig())
		rules := load(t, r.Snapshot())
		for step := range 40 {
			if rng.IntN(6) == 0 {
				kind = kinds[rng.IntN(len(kinds))]
			}
			for range rng.IntN(4) {
				if at := rng.IntN(len(eps)); rng.IntN(2) == 0 {
					eps = slices.Delete(eps, at, at+1+rng.IntN(min(3, len(eps)-at)))
				} else if e := endpoint(1, rng.IntN(400)); !slices.ContainsFunc(eps, func(o model.Endpoint) bool { return o.Addr == e.Addr }) {
					eps = append(eps, e)
				}
			}
			all := model.Changes{Services: put(kindsOfService[kind](1, eps))}
			rules.patch(t, r.Update(all).Patch)
			if rng.IntN(3) == 0 {
				rules.patch(t, r.Cleanup())
			}
			rules.equalsRestarted(t, r, all, fmt.Sprintf("seed %d step %d, %s", seed, step, kind))
		}
	}
}

// TestFrontMoves: a listener that goes from port to port takes the endpoints of the port that
// it is on, also where two ports have the same ones for a while.
func TestFrontMoves(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 4))
		r := mustNew(t, testConfig())
		rules := load(t, r.Snapshot())
		eps := [3]model.Endpoints{endpointsOf("10.244.0.1:80", "10.244.0.2:80*"), endpointsOf("10.244.0.2:80*", "10.244.0.3:80"), {}}
		lists := [2]int{}
		owner, other, external := 0, 0, 0
		for step := range 40 {
			switch rng.IntN(5) {
			case 0:
				owner = 1 - owner
			case 1:
				other = 1 - other
			case 2:
				external = 1 - external
			default:
				lists[rng.IntN(2)] = rng.IntN(len(eps))
			}
			s := service("default/a", "10.96.0.1", port("x tcp 80 0"), port("y tcp 81 0"))
			s.Ports[owner].NodePort, s.Ports[other].Number = 30080, 82
			s.Ports[external].External[model.IPv4] = []model.External{{Addr: netip.MustParseAddr("203.0.113.1")}}
			for i := range s.Ports {
				s.Ports[i].Backends[model.IPv4].Cluster = eps[lists[i]]
			}
			local(s, rng.IntN(4) == 0, rng.IntN(4) == 0)
			rules.patch(t, r.Update(model.Changes{Services: put(s)}).Patch)
			rules.equalsRestarted(t, r, model.Changes{Services: put(s)}, fmt.Sprintf("seed %d step %d", seed, step))
		}
	}
}

// TestChangesTouchOnlyWhatTheyMust: whatever a Service looks like, a replaced
// endpoint is one element of each listener.
func TestChangesTouchOnlyWhatTheyMust(t *testing.T) {
	for seed := range uint64(100) {
		w := &world{rng: rand.New(rand.NewPCG(seed, 2)), services: make(map[model.Key]*model.Service)}
		r := mustNew(t, testConfig())
		s := w.service(1)
		// One remote endpoint, no local one, nothing that drains: all listeners have it, or none.
		only := func(host int) *model.Service {
			next := *s
			next.Ports = slices.Clone(s.Ports)
			for j := range next.Ports {
				next.Ports[j].Backends[model.IPv4] = model.Backends{Cluster: endpointsOf(fmt.Sprintf("10.244.0.%d:80", host))}
				next.Ports[j].Backends[model.IPv6] = model.Backends{Cluster: endpointsOf(fmt.Sprintf("[fd00:10:244::%d]:80", host))}
			}
			return &next
		}
		r.Update(model.Changes{Services: put(only(2))})
		slots := r.Elements()
		members := 0
		for _, a := range r.services[s.Name].affinities {
			members += a.endpoints[byCluster].Len() + a.endpoints[byLocal].Len()
		}
		rules := load(t, r.Snapshot())
		u := r.Update(model.Changes{Services: put(only(4))})
		rules.patch(t, u.Patch)
		if u.Added != slots+members || u.Removed != members {
			t.Errorf("seed %d: replacing the endpoint of %d slots and %d lists with affinity adds %d elements and removes %d", seed, slots, members, u.Added, u.Removed)
		}
	}
}

func TestRestoreIgnoresNonsense(t *testing.T) {
	r := mustNew(t, testConfig())
	r.Restore(&weftv1.Fragment{Tables: []*weftv1.Table{{
		Family: "ip", Name: Table,
		Chains: []*weftv1.Chain{{Name: "pick-"}, {Name: "pick--1"}, {Name: "pick-99999999"}, {Name: "nodeport-pick-x"}, {Name: "other"}},
		Maps: []*weftv1.Set{
			{Name: "endpoints", Elements: []*weftv1.Element{
				{Key: "10.96.0.1 . tcp . 80 . -1", Value: "10.1.0.1 . 80"}, {Key: "10.96.0.1 . tcp . 80 . 1000000000", Value: "10.1.0.1 . 80"},
				{Key: "x . tcp . 80 . 0", Value: "10.1.0.1 . 80"}, {Key: "10.96.0.1 . icmp . 80 . 0", Value: "10.1.0.1 . 80"},
				{Key: "10.96.0.1 . tcp . 80 . 0", Value: "10.1.0.1"}, {Key: " . ", Value: ""}, {},
				{Key: "10.96.0.1 . tcp . 80 . 3", Value: "10.1.0.1 . 80"}, {Key: "10.96.0.1 . tcp . 80 . 2", Value: "10.1.0.1 . 80"},
			}},
			{Name: "nodeport-endpoints", Elements: []*weftv1.Element{{Key: "tcp . 80"}, {Key: "tcp . 99999 . 0", Value: "10.1.0.1 . 80"}}},
		},
	}}})
	if r.Idle() {
		t.Error("chains that are none of ours were taken over")
	}
	u := r.Update(model.Changes{Services: put(service("default/a", "10.96.0.1", port("http tcp 80 0", "10.1.0.1:80")))})
	if u.Added == 0 {
		t.Error("no elements")
	}
	load(t, r.Snapshot()).check(t)
}
