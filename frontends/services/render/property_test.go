package render

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/frontends/services/model"
)

// world makes random changes of a small model, in which every address is used
// by at most one Service at a time.
type world struct {
	rng      *rand.Rand
	services map[model.Key]*model.Service
}

func (w *world) endpoints(f model.Family) []model.Endpoint {
	var out []model.Endpoint
	for i := range 6 {
		if w.rng.IntN(2) == 0 {
			continue
		}
		text := fmt.Sprintf("10.244.0.%d:80", i+1)
		if f == model.IPv6 {
			text = fmt.Sprintf("[fd00:10:244::%d]:80", i+1)
		}
		out = append(out, model.Endpoint{Addr: netip.MustParseAddrPort(text), Local: i%2 == 0})
	}
	return out
}

func (w *world) service(i int) *model.Service {
	ips := fmt.Sprintf("10.96.0.%d", i+1)
	if w.rng.IntN(3) > 0 {
		ips += fmt.Sprintf(" fd00:10:96::%d", i+1)
	}
	var ports []model.Port
	for j := range 1 + w.rng.IntN(2) {
		// Sometimes a port is renamed.
		spec := fmt.Sprintf("p%d %s %d %d", j+10*w.rng.IntN(2), []string{"tcp", "udp"}[j], 80+j, w.rng.IntN(2)*(30000+2*i+j))
		ports = append(ports, port(spec))
	}
	s := service(fmt.Sprintf("default/s%d", i), ips, ports...)
	s.InternalLocal = w.rng.IntN(3) == 0
	for j := range s.Ports {
		p := &s.Ports[j]
		if w.rng.IntN(5) == 0 {
			// Another Service has the claim.
			p.ClusterIPs[w.rng.IntN(2)] = netip.Addr{}
		}
		for f := range model.Families {
			b := &p.Backends[f]
			b.Cluster = w.endpoints(f)
			if s.InternalLocal {
				b.Local = slices.DeleteFunc(slices.Clone(b.Cluster), func(e model.Endpoint) bool { return !e.Local })
			}
			if p.Protocol == model.UDP {
				b.Draining = slices.DeleteFunc(w.endpoints(f), func(e model.Endpoint) bool { return contains(b.Cluster, e) })
			}
		}
	}
	return s
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

// TestPatchesLeadToSnapshot: patches and snapshot are the same at every step;
// what a restarted renderer makes from the same model and the earlier fragment
// is the same again; and without that fragment it depends on the model alone.
func TestPatchesLeadToSnapshot(t *testing.T) {
	for seed := range uint64(60) {
		w := &world{rng: rand.New(rand.NewPCG(seed, 1)), services: make(map[model.Key]*model.Service)}
		cfg := testConfig()
		r := mustNew(t, cfg)
		rules := load(t, r.Snapshot())
		for step := range 40 {
			var node *model.Node
			if w.rng.IntN(5) == 0 {
				node = nodeOf(fmt.Sprintf("192.0.2.%d", w.rng.IntN(3)+1))
			}
			changes := w.step()
			u := r.Update(model.Changes{Services: changes, Node: node})
			if u.Whole {
				t.Fatalf("seed %d step %d: snapshot where a patch does", seed, step)
			}
			rules.patch(t, u.Patch)
			if w.rng.IntN(3) == 0 {
				rules.patch(t, r.Sweep())
			}
			snapshot := r.Snapshot()
			want := load(t, snapshot)
			want.check(t)
			if diff := cmp.Diff(want.text(), rules.text()); diff != "" {
				t.Fatalf("seed %d step %d: snapshot and patches differ (-snapshot +patches):\n%s", seed, step, diff)
			}
			if step%10 != 9 {
				continue
			}
			again := mustNew(t, cfg)
			again.Restore(snapshot)
			again.Load(model.Changes{Services: w.all(), Node: &r.node})
			if diff := cmp.Diff(want.text(), load(t, again.Snapshot()).text()); diff != "" {
				t.Fatalf("seed %d step %d: a restart changes what is there (-before +after):\n%s", seed, step, diff)
			}
			texts := make([]string, 2)
			for i := range texts {
				fresh := mustNew(t, cfg)
				fresh.Update(model.Changes{Services: w.all(), Node: &r.node})
				texts[i] = load(t, fresh.Snapshot()).text()
			}
			if texts[0] != texts[1] {
				t.Fatalf("seed %d step %d: a fresh start depends on the order", seed, step)
			}
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

func TestAssignIsIdempotent(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	w := &world{rng: rng}
	var old []netip.AddrPort
	for range 1000 {
		active := w.endpoints(model.IPv4)
		draining := slices.DeleteFunc(w.endpoints(model.IPv4), func(e model.Endpoint) bool { return contains(active, e) })
		s := assign(old, active, draining)
		again := assign(s.all, active, draining)
		if !slices.Equal(s.all, again.all) {
			t.Fatalf("from %v: %v, then %v", old, s.all, again.all)
		}
		for i, e := range s.all {
			if !e.IsValid() || slices.Index(s.all, e) != i {
				t.Fatalf("slots %v have a gap or a repeat", s.all)
			}
		}
		old = s.all
	}
}
