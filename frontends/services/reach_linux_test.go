package services

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/frontends/publish"
	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/services/render"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// flow is a row of a table of flows: who asks where, and what comes of it.
type flow struct {
	from string
	// to is a place such as "cluster 1", "external 1", "lb 1" or "nodeport 1", or
	// "cluster 1:81" for another port.
	to string
	// want is "rejected", "dropped", or the names of all that answer, with the word
	// "kept" or "masq" for the source that they see if it matters.
	want string
}

// place spells out where a flow goes.
func place(f model.Family, to string) string {
	kind, rest, _ := strings.Cut(to, " ")
	var i int
	port := uint16(80)
	if _, err := fmt.Sscanf(strings.Replace(rest, ":", " ", 1), "%d %d", &i, &port); err != nil && i == 0 {
		panic("no number in " + to)
	}
	switch kind {
	case "cluster":
		return netip.AddrPortFrom(clusterIP(f, i), port).String()
	case "external":
		return netip.AddrPortFrom(externalIP(f, i), port).String()
	case "lb":
		return netip.AddrPortFrom(balancerIP(f, i), port).String()
	case "nodeport":
		return netip.AddrPortFrom(nodeAddr[f], nodePortOf(i)).String()
	default:
		panic("no such place: " + to)
	}
}

// who returns the namespace of a client, and its address.
func (c *cluster) who(f model.Family, name string) (*nfttest.NS, netip.Addr) {
	switch name {
	case "node":
		return c.node, nodeAddr[f]
	case "ext":
		return c.ext, extAddr[f]
	default:
		i := int(name[3] - '0')
		return c.pods[i], podAddr(f, i)
	}
}

// dropWait is how long a dropped flow must stay without an answer.
const dropWait = 150 * time.Millisecond

// check sends a table's flows over both families, TCP and UDP. Most of the time is
// spent waiting for what does not come, so several go at once.
func (c *cluster) check(t *testing.T, flows []flow) {
	t.Helper()
	var wg sync.WaitGroup
	defer wg.Wait()
	room := make(chan struct{}, 8)
	for _, tt := range flows {
		for f := range model.NumFamilies {
			for _, network := range []string{"tcp", "udp"} {
				room <- struct{}{}
				wg.Go(func() {
					defer func() { <-room }()
					t.Run(fmt.Sprintf("%s to %s %s %s", tt.from, tt.to, f, network), func(t *testing.T) { c.send(t, tt, f, network) })
				})
			}
		}
	}
}

// send checks one flow.
func (c *cluster) send(t *testing.T, tt flow, f model.Family, network string) {
	ns, own := c.who(f, tt.from)
	to := place(f, tt.to)
	switch tt.want {
	case "dropped":
		pod, _, err := askFrom(ns, netip.Addr{}, network, to, dropWait)
		// A sender on the node itself hears by EPERM that a datagram is dropped.
		if !errors.Is(err, os.ErrDeadlineExceeded) && !isTimeout(err) && !(ns == c.node && errors.Is(err, syscall.EPERM)) {
			t.Errorf("%q answers, %v: want silence", pod, err)
		}
		return
	case "rejected":
		pod, _, err := ask(ns, network, to)
		if !errors.Is(err, syscall.ECONNREFUSED) && !(ns == c.node && errors.Is(err, syscall.EPERM)) {
			t.Errorf("%q answers, %v: want connection refused", pod, err)
		}
		return
	}
	want := strings.Fields(tt.want)
	source := ""
	if last := want[len(want)-1]; last == "kept" || last == "masq" {
		want, source = want[:len(want)-1], last
	}
	got := make(map[string]bool)
	// Enough that who was not picked by then never is.
	for i := 0; i < 100 && len(got) < len(want) || i < 8; i++ {
		pod, saw, err := ask(ns, network, to)
		if err != nil {
			t.Fatalf("ask %s: %v", to, err)
		}
		got[pod] = true
		if !slices.Contains(want, pod) {
			t.Fatalf("%s answers, want one of %v", pod, want)
		}
		// A pod that reaches itself is always masqueraded.
		if kept := saw == own; pod != tt.from && (source == "kept" && !kept || source == "masq" && saw != podAddr(f, int(pod[3]-'0')).Prev()) {
			t.Errorf("%s saw %s: want the source of %s %s", pod, saw, own, source)
		}
	}
	if len(got) != len(want) {
		t.Errorf("of %v only %v ever answer", want, got)
	}
}

func isTimeout(err error) bool {
	var e net.Error
	return errors.As(err, &e) && e.Timeout()
}

// cast are the Services of the tables of flows. Where a policy is Local the endpoint
// on this node is not the first one.
func cast() []*model.Service {
	return []*model.Service{
		newService(1, "2*", "3"),
		newService(2),
		newService(3, "1*"),
		withPolicies(newService(4, "2", "3*"), false, true),
		withPolicies(newService(5, "2"), false, true),
		withPolicies(newService(6, "2", "3*"), true, false),
		withPolicies(newService(7, "2"), true, false),
		withPolicies(newService(8), true, true),
		allow(newService(9, "2*", "3"), extAddr[0], extAddr[1]),
		allow(newService(10, "2*", "3"), podAddr(0, 1), podAddr(1, 1), nodeAddr[0], nodeAddr[1]),
		withPolicies(newService(11, "2", "3*"), true, true),
		allow(withPolicies(newService(12, "2", "3*"), false, true), podAddr(0, 1), podAddr(1, 1)),
		edit(newService(13, "2*"), func(s *model.Service) {
			for i := range s.Ports {
				s.Ports[i].Backends[model.IPv6] = model.Backends{}
			}
		}),
	}
}

// start publishes a cast with a configuration.
func (c *cluster) start(t *testing.T, services []*model.Service, edit ...func(*render.Config)) (*stack, *plane) {
	t.Helper()
	s := newStack(t, c.node)
	s.aggregator(t)
	p := newPlane(t, s, edit...)
	var ch model.Changes
	for _, svc := range services {
		ch.Services = append(ch.Services, model.Change{Name: svc.Name, New: svc})
	}
	ch.Node, ch.ServiceCIDRs = thisNode(), serviceRanges()
	p.publish(t, ch)
	c.node.ListRuleset(t)
	return s, p
}

// TestFlows sends packets from everywhere to every kind of Service.
//
// Behaviour: 1, 2, 3, 6, 7, 8, 9, 10, 11, 15, 18, 25, 26, 28, 30, 32, 33, 34, 38, 41, 42, 43, 47, 49, 50, 51, 52, 54, 56, 57, 58, 59, 87, 89, 98.
func TestFlows(t *testing.T) {
	c := newCluster(t)
	// An endpoint on the node's own network, behind s15.
	for _, a := range nodeAddr {
		serveAt(t, c.node, "node", a)
	}
	host := edit(newService(15), func(s *model.Service) {
		for i := range s.Ports {
			for f := range model.NumFamilies {
				s.Ports[i].Backends[f].Cluster = model.MakeEndpoints(model.Endpoint{Addr: netip.AddrPortFrom(nodeAddr[f], 8080), Local: true})
			}
		}
	})
	c.start(t, append(cast(), withPolicies(host, false, true)))
	var flows []flow
	// The policy Cluster, from everywhere to everything.
	for _, who := range []string{"pod1", "node", "ext"} {
		inside := "pod2 pod3 masq"
		if strings.HasPrefix(who, "pod") {
			inside = "pod2 pod3 kept"
		}
		flows = append(flows, flow{who, "cluster 1", inside}, flow{who, "external 1", "pod2 pod3 masq"},
			flow{who, "lb 1", "pod2 pod3 masq"}, flow{who, "nodeport 1", "pod2 pod3 masq"})
		// No endpoint, never an endpoint, and not an address of weft.
		for _, to := range []string{"cluster 2", "external 2", "lb 2", "nodeport 2", "cluster 1:81", "cluster 8", "external 8", "lb 8", "nodeport 8"} {
			flows = append(flows, flow{who, to, "rejected"})
		}
		flows = append(flows, flow{who, "cluster 99", "dropped"}, flow{who, "lb 1:81", "world"}, flow{who, "external 99", "world"})
		// The internal policy Local concerns ClusterIPs alone.
		local := strings.Replace(inside, "pod2 pod3", "pod3", 1)
		flows = append(flows, flow{who, "cluster 6", local}, flow{who, "nodeport 6", "pod2 pod3 masq"}, flow{who, "lb 6", "pod2 pod3 masq"},
			flow{who, "cluster 7", "dropped"}, flow{who, "lb 7", "pod2 masq"}, flow{who, "nodeport 7", "pod2 masq"})
		flows = append(flows, flow{who, "cluster 15", "node"}, flow{who, "lb 15", "node"}, flow{who, "nodeport 15", "node"})
		// The external one leaves them alone.
		flows = append(flows, flow{who, "cluster 4", inside}, flow{who, "cluster 11", local})
	}
	for _, at := range []string{"external", "lb", "nodeport"} {
		flows = append(flows,
			flow{"pod1", at + " 3", "pod1"},
			// Outside keeps its source and to local endpoints, pods and the node do not have to.
			flow{"ext", at + " 4", "pod3 kept"}, flow{"pod1", at + " 4", "pod2 pod3 kept"}, flow{"node", at + " 4", "pod2 pod3 masq"},
			flow{"ext", at + " 5", "dropped"}, flow{"pod1", at + " 5", "pod2 kept"}, flow{"node", at + " 5", "pod2 masq"},
			flow{"ext", at + " 11", "pod3 kept"}, flow{"pod1", at + " 11", "pod2 pod3 kept"}, flow{"node", at + " 11", "pod2 pod3 masq"})
	}
	flows = append(flows,
		flow{"pod1", "cluster 3", "pod1"}, flow{"pod2", "cluster 1", "pod2 pod3 kept"}, flow{"pod2", "lb 4", "pod2 pod3 kept"},
		// Source ranges concern load balancers alone, and everybody.
		flow{"ext", "lb 9", "pod2 pod3 masq"}, flow{"pod1", "lb 9", "dropped"}, flow{"node", "lb 9", "dropped"},
		flow{"ext", "lb 10", "dropped"}, flow{"pod1", "lb 10", "pod2 pod3 masq"}, flow{"pod2", "lb 10", "dropped"},
		flow{"pod1", "lb 12", "pod2 pod3 kept"}, flow{"pod2", "lb 12", "dropped"}, flow{"ext", "lb 12", "dropped"},
		flow{"pod2", "cluster 9", "pod2 pod3 kept"}, flow{"pod2", "external 9", "pod2 pod3 masq"}, flow{"pod2", "nodeport 9", "pod2 pod3 masq"},
		flow{"ext", "nodeport 10", "pod2 pod3 masq"}, flow{"ext", "external 10", "pod2 pod3 masq"},
	)
	c.check(t, flows)
	// IPv4 alone has an endpoint.
	for _, network := range []string{"tcp", "udp"} {
		c.send(t, flow{"pod1", "cluster 13", "pod2 kept"}, model.IPv4, network)
		c.send(t, flow{"pod1", "cluster 13", "rejected"}, model.IPv6, network)
	}
}

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
