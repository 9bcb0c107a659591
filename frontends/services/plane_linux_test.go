package services

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/frontends/publish"
	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/services/render"
)

// plane is the data plane alone: a renderer that is given the model's values and
// publishes through the socket.
type plane struct {
	mu      sync.Mutex
	r       *render.Renderer
	session *client.Session
	begun   bool
}

// podCIDRs are those of the cluster.
var podCIDRs = []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16"), netip.MustParsePrefix("fd00:10:244::/48")}

// newPlane publishes nothing yet. The defaults are those of kube-proxy.
func newPlane(t testing.TB, s *stack, edit ...func(*render.Config)) *plane {
	t.Helper()
	cfg := render.Config{Families: [2]bool{true, true}, Detect: render.Detect{CIDRs: podCIDRs}, MasqueradeBit: render.DefaultMasqueradeBit}
	for _, e := range edit {
		e(&cfg)
	}
	p := &plane{}
	var err error
	if p.r, err = render.New(cfg); err != nil {
		t.Fatal(err)
	}
	c, err := client.Dial(context.Background(), client.Config{Socket: s.socket, Publisher: Publisher})
	must(t, err)
	p.session = c.Session(client.SessionConfig{Snapshot: func(string) *weftv1.Fragment {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.r.Snapshot()
	}})
	t.Cleanup(func() { _, _ = p.session.Close(), c.Close() })
	return p
}

// publish commits a change, the first time with a snapshot, and returns its update.
func (p *plane) publish(t testing.TB, c model.Changes) publish.Update {
	t.Helper()
	p.mu.Lock()
	u := p.r.Update(c)
	if u.Patch == nil && !u.Snapshot && p.begun {
		p.mu.Unlock()
		return u
	}
	var pending *client.Pending
	if u.Snapshot || !p.begun {
		snapshot := p.r.Snapshot()
		p.mu.Unlock()
		pending = p.session.StartPut(snapshot)
	} else {
		p.mu.Unlock()
		pending = p.session.StartPatch(u.Patch)
	}
	p.wait(t, pending)
	p.begun = true
	return u
}

// sweep commits the Cleanup.
func (p *plane) sweep(t testing.TB) {
	t.Helper()
	p.mu.Lock()
	patch := p.r.Cleanup()
	p.mu.Unlock()
	if patch != nil {
		p.wait(t, p.session.StartPatch(patch))
	}
}

func (p *plane) wait(t testing.TB, pending *client.Pending) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	if _, err := pending.Wait(ctx); err != nil {
		t.Fatalf("publish: %v", err)
	}
}

// put makes these Services what they are now.
func (p *plane) put(t testing.TB, services ...*model.Service) publish.Update {
	t.Helper()
	var c model.Changes
	for _, s := range services {
		c.Services = append(c.Services, model.Change{Name: s.Name, New: s})
	}
	slices.SortFunc(c.Services, func(a, b model.Change) int { return model.CompareKeys(a.Name, b.Name) })
	return p.publish(t, c)
}

// drop takes Services away.
func (p *plane) drop(t testing.TB, names ...string) publish.Update {
	t.Helper()
	var c model.Changes
	for _, n := range names {
		c.Services = append(c.Services, model.Change{Name: model.Key{Namespace: "default", Name: n}})
	}
	return p.publish(t, c)
}

// thisNode is the node of the cluster.
func thisNode() *model.Node {
	return &model.Node{Known: true, Name: "node-1", Addresses: nodeAddr, PodCIDRs: model.Prefixes{{podCIDRs[0]}, {podCIDRs[1]}}}
}

// serviceRanges hold the ClusterIPs.
func serviceRanges() *model.Prefixes {
	return &model.Prefixes{{netip.MustParsePrefix("10.96.0.0/16")}, {netip.MustParsePrefix("fd00:10:96::/112")}}
}

// externalIP and balancerIP are addresses of the i-th Service from outside.
func externalIP(f model.Family, i int) netip.Addr {
	return netip.MustParseAddr([]string{fmt.Sprintf("203.0.113.%d", i), fmt.Sprintf("2001:db8:e::%d", i)}[f])
}

func balancerIP(f model.Family, i int) netip.Addr {
	return netip.MustParseAddr([]string{fmt.Sprintf("203.0.113.%d", 100+i), fmt.Sprintf("2001:db8:1b::%d", i)}[f])
}

// nodePortOf is the NodePort of the i-th Service.
func nodePortOf(i int) uint16 { return uint16(30080 + i) }

// backendsOf are pods such as "2", or "2*" for one on this node, on port 8080.
func backendsOf(f model.Family, pods ...string) model.Endpoints {
	var out []model.Endpoint
	for _, text := range pods {
		n, local := strings.CutSuffix(text, "*")
		out = append(out, model.Endpoint{Addr: netip.AddrPortFrom(podAddr(f, int(n[0]-'0')), 8080), Local: local})
	}
	return model.MakeEndpoints(out...)
}

// newService returns the Service s<i> with a TCP and a UDP port 80 of both families,
// an external address, one of a load balancer and a NodePort, and these pods.
func newService(i int, pods ...string) *model.Service {
	s := &model.Service{Name: model.Key{Namespace: "default", Name: fmt.Sprintf("s%d", i)}}
	for f := range model.NumFamilies {
		s.ClusterIPs[f] = clusterIP(f, i)
	}
	for _, proto := range []model.Protocol{model.TCP, model.UDP} {
		p := model.Port{Name: proto.String(), Protocol: proto, Number: 80, NodePort: nodePortOf(i), ClusterIPs: s.ClusterIPs}
		for f := range model.NumFamilies {
			p.External[f] = []model.External{{Addr: externalIP(f, i)}, {Addr: balancerIP(f, i), LoadBalancer: true}}
			p.Backends[f].Cluster = backendsOf(f, pods...)
		}
		s.Ports = append(s.Ports, p)
	}
	return s
}

// edit changes a fresh Service.
func edit(s *model.Service, change func(*model.Service)) *model.Service {
	change(s)
	return s
}

// withPolicies makes traffic policies Local.
func withPolicies(s *model.Service, internal, external bool) *model.Service {
	s.InternalLocal, s.ExternalLocal = internal, external
	for i := range s.Ports {
		for f := range model.NumFamilies {
			b := &s.Ports[i].Backends[f]
			b.Local = model.MakeEndpoints(slices.DeleteFunc(slices.Collect(b.Cluster.All()), func(e model.Endpoint) bool { return !e.Local })...)
		}
	}
	return s
}

// allow limits who may reach the addresses of load balancers.
func allow(s *model.Service, sources ...netip.Addr) *model.Service {
	for f := range model.NumFamilies {
		s.SourceRanges[f] = []netip.Prefix{}
	}
	for _, a := range sources {
		f := model.FamilyOf(a)
		s.SourceRanges[f] = append(s.SourceRanges[f], netip.PrefixFrom(a, a.BitLen()))
	}
	return s
}
