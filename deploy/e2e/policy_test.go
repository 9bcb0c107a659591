package e2e

import (
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// two pods on the first node, one on the second
func (e *env) uneven() []*lab.Pod { return []*lab.Pod{e.web[0], e.web[3], e.web[1]} }

func (e *env) onNode(node int) []*lab.Pod {
	var local []*lab.Pod
	for _, p := range e.uneven() {
		if p.Node() == e.lab.Nodes[node] {
			local = append(local, p)
		}
	}
	return local
}

// policyExternal: with the external policy Local a node forwards external traffic only to its own pods,
// with the client's source address, or drops it. Pods and the node's processes reach all pods.
// ClusterIPs are unaffected.
//
// Behaviour: 49, 50, 51, 52, 54, 60.
func policyExternal(t *testing.T, e *env) {
	s := e.webService(t, "web", func(s *corev1.Service) {
		s.Spec.Type = corev1.ServiceTypeNodePort
		s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	})
	s.endpoints(t, "a", e.uneven()...)
	var lost []question
	for i, n := range e.lab.Nodes {
		for family, addr := range n.Addresses.All() {
			for port, network := range map[string]string{"http": "tcp", "http-udp": "udp"} {
				to := netip.AddrPortFrom(addr, s.nodePort(port))
				if local := e.onNode(i); len(local) > 0 {
					e.spread(t, e.lab.Outside, network, to, local...)
					if got, want := e.client(t, e.lab.Outside, network, to), e.lab.Outside.Addresses.All()[family]; got != want {
						t.Errorf("%s %s from outside: seen as %s, want %s", network, to, got, want)
					}
				} else {
					lost = append(lost, question{e.lab.Outside, network, to})
				}
				c := e.clients[i]
				e.spread(t, c, network, to, e.uneven()...)
				if got, want := e.client(t, c, network, to), c.Addresses.All()[family]; got != want {
					t.Errorf("%s %s from %s: seen as %s, want %s", network, to, c.Name(), got, want)
				}
				e.spread(t, n, network, to, e.uneven()...)
				if got := e.client(t, n, network, to); !e.isNode(got) {
					t.Errorf("%s %s from %s: seen as %s, want a node's address", network, to, n.Name(), got)
				}
			}
		}
		e.spread(t, e.clients[i], "tcp", s.vip(false, 80), e.uneven()...)
	}
	e.dropped(t, lost...)
	// Without any endpoint the packet is refused, because retries elsewhere cannot help.
	s.endpoints(t, "a")
	e.refused(t, e.lab.Outside, "tcp", e.nodePortOf(2, s, "http"))
	e.refused(t, e.lab.Outside, "tcp", e.nodePortOf(0, s, "http"))
}

// policyInternal: with the internal policy Local a ClusterIP leads only to the node's own pods;
// NodePorts are unaffected.
//
// Behaviour: 56, 57, 58, 60.
func policyInternal(t *testing.T, e *env) {
	local := corev1.ServiceInternalTrafficPolicyLocal
	s := e.webService(t, "web", func(s *corev1.Service) {
		s.Spec.Type = corev1.ServiceTypeNodePort
		s.Spec.InternalTrafficPolicy = &local
	})
	s.endpoints(t, "a", e.uneven()...)
	var lost []question
	for i, n := range e.lab.Nodes {
		for _, v6 := range []bool{false, true} {
			to := s.vip(v6, 80)
			for _, from := range []asker{e.clients[i], n} {
				if pods := e.onNode(i); len(pods) > 0 {
					e.spread(t, from, "tcp", to, pods...)
					e.spread(t, from, "udp", to, pods...)
				} else {
					lost = append(lost, question{from, "tcp", to})
				}
			}
		}
		e.spread(t, e.lab.Outside, "tcp", e.nodePortOf(i, s, "http"), e.uneven()...)
	}
	e.dropped(t, lost...)
	// A new pod of the node is found at once, and a pod without a node is never local.
	s.endpoints(t, "a", append(e.uneven(), e.web[2])...)
	e.spread(t, e.clients[2], "tcp", s.vip(false, 80), e.web[2])
	nowhere := s.slice(discoveryv1.AddressTypeIPv4, "a", e.web[2:3])
	nowhere.Endpoints[0].NodeName = nil
	s.apply(t, nowhere)
	e.dropped(t, question{e.clients[2], "tcp", s.vip(false, 80)})
	s.endpoints(t, "a")
	for _, c := range e.clients {
		e.refused(t, c, "tcp", s.vip(false, 80))
	}
}

// policyBoth: each policy affects only its own addresses, and a change of one keeps the other and
// connections.
//
// Behaviour: 59, 108.
func policyBoth(t *testing.T, e *env) {
	local := corev1.ServiceInternalTrafficPolicyLocal
	s := e.webService(t, "web", func(s *corev1.Service) {
		s.Spec.Type = corev1.ServiceTypeNodePort
		s.Spec.InternalTrafficPolicy, s.Spec.ExternalTrafficPolicy = &local, corev1.ServiceExternalTrafficPolicyLocal
	})
	s.endpoints(t, "a", e.uneven()...)
	inside, outside := s.vip(false, 80), e.nodePortOf(1, s, "http")
	e.spread(t, e.clients[1], "tcp", inside, e.onNode(1)...)
	e.spread(t, e.lab.Outside, "tcp", outside, e.onNode(1)...)
	conn, err := e.lab.Outside.Open(e.ctx, "tcp", outside, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	flow := e.flow(t, e.lab.Outside, e.nodePortOf(1, s, "http-udp"), 40400)
	flow.reaches(t, e, e.web[1])

	s.update(t, func(s *corev1.Service) { s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster })
	e.spread(t, e.lab.Outside, "tcp", outside, e.uneven()...)
	e.spread(t, e.clients[1], "tcp", inside, e.onNode(1)...)
	s.update(t, func(s *corev1.Service) {
		all := corev1.ServiceInternalTrafficPolicyCluster
		s.Spec.InternalTrafficPolicy, s.Spec.ExternalTrafficPolicy = &all, corev1.ServiceExternalTrafficPolicyLocal
	})
	e.spread(t, e.clients[1], "tcp", inside, e.uneven()...)
	e.spread(t, e.lab.Outside, "tcp", outside, e.onNode(1)...)
	if _, err := conn.Ask(e.ctx, "still there"); err != nil {
		t.Errorf("connection made before the policies changed: %v", err)
	}
	if a, err := e.askUDP(flow.Conversation); err != nil || a.Pod != e.web[1].Name() {
		t.Errorf("UDP flow made before the policies changed: answer of %q, %v", a.Pod, err)
	}
}

// topologyZones: endpoints with hints serve their zone if all have hints and the zone has endpoints;
// the node's zone counts once written.
//
// Behaviour: 71, 72, 73.
func topologyZones(t *testing.T, e *env) {
	s := e.webService(t, "web", func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeNodePort })
	hinted := func(pods []*lab.Pod) *discoveryv1.EndpointSlice {
		slice := s.slice(discoveryv1.AddressTypeIPv4, "a", pods)
		for i, p := range pods {
			slice.Endpoints[i].Hints = &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: zoneOf(p.Node())}}}
		}
		return slice
	}
	s.apply(t, hinted(e.uneven()))
	to := s.vip(false, 80)
	e.spread(t, e.clients[0], "tcp", to, e.onNode(0)...)
	e.spread(t, e.clients[1], "tcp", to, e.onNode(1)...)
	e.spread(t, e.clients[2], "tcp", to, e.uneven()...) // no endpoint for its zone
	e.spread(t, e.lab.Outside, "tcp", e.nodePortOf(1, s, "http"), e.onNode(1)...)

	e.setZone(t, e.lab.Nodes[2], zoneOf(e.lab.Nodes[1]))
	t.Cleanup(func() { e.setZone(t, e.lab.Nodes[2], zoneOf(e.lab.Nodes[2])) })
	e.spread(t, e.clients[2], "tcp", to, e.onNode(1)...)

	one := hinted(e.uneven())
	one.Endpoints[0].Hints = nil
	s.apply(t, one)
	for _, c := range e.clients {
		e.spread(t, c, "tcp", to, e.uneven()...)
	}
}
