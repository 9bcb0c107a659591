package model

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

func zones(names ...string) func(*discoveryv1.Endpoint) {
	return func(e *discoveryv1.Endpoint) {
		if e.Hints == nil {
			e.Hints = &discoveryv1.EndpointHints{}
		}
		for _, n := range names {
			e.Hints.ForZones = append(e.Hints.ForZones, discoveryv1.ForZone{Name: n})
		}
	}
}

func nodes(names ...string) func(*discoveryv1.Endpoint) {
	return func(e *discoveryv1.Endpoint) {
		if e.Hints == nil {
			e.Hints = &discoveryv1.EndpointHints{}
		}
		for _, n := range names {
			e.Hints.ForNodes = append(e.Hints.ForNodes, discoveryv1.ForNode{Name: n})
		}
	}
}

// TestTopology: which endpoints node n1 in zone a uses.
//
// Behaviour: 63, 71, 72, 73, 74, 75, 76.
func TestTopology(t *testing.T) {
	unready, terminating := conditions(false, false, false), conditions(false, true, true)
	for _, tt := range []struct {
		name      string
		zone      string
		endpoints []discoveryv1.Endpoint
		want      string
		local     string
	}{
		{"no hints", "a", []discoveryv1.Endpoint{ep("10.1.0.1"), ep("10.1.0.2")}, "10.1.0.1:8080 10.1.0.2:8080", ""},
		{"same zone", "a", []discoveryv1.Endpoint{ep("10.1.0.1", zones("a")), ep("10.1.0.2", zones("b"))}, "10.1.0.1:8080", ""},
		{"several zones in a hint", "a", []discoveryv1.Endpoint{ep("10.1.0.1", zones("b", "a")), ep("10.1.0.2", zones("b")), ep("10.1.0.3", zones("a"))},
			"10.1.0.1:8080 10.1.0.3:8080", ""},
		{"no hint for this zone", "c", []discoveryv1.Endpoint{ep("10.1.0.1", zones("a")), ep("10.1.0.2", zones("b"))}, "10.1.0.1:8080 10.1.0.2:8080", ""},
		{"the node has no zone", "", []discoveryv1.Endpoint{ep("10.1.0.1", zones("a")), ep("10.1.0.2", zones(""))}, "10.1.0.1:8080 10.1.0.2:8080", ""},
		{"one ready endpoint without a hint", "a", []discoveryv1.Endpoint{ep("10.1.0.1", zones("a")), ep("10.1.0.2", zones("b")), ep("10.1.0.3")},
			"10.1.0.1:8080 10.1.0.2:8080 10.1.0.3:8080", ""},
		{"an empty hint is none", "a", []discoveryv1.Endpoint{ep("10.1.0.1", zones("a")), ep("10.1.0.2", zones())}, "10.1.0.1:8080 10.1.0.2:8080", ""},
		{"one without a hint that is not ready does not matter", "a",
			[]discoveryv1.Endpoint{ep("10.1.0.1", zones("a")), ep("10.1.0.2", zones("b")), ep("10.1.0.3", unready), ep("10.1.0.4", terminating)}, "10.1.0.1:8080", ""},
		{"the only one for this zone is not ready", "a", []discoveryv1.Endpoint{ep("10.1.0.1", zones("a"), unready), ep("10.1.0.2", zones("b"))}, "10.1.0.2:8080", ""},
		{"none ready: terminating ones of any zone", "a",
			[]discoveryv1.Endpoint{ep("10.1.0.1", zones("a"), terminating), ep("10.1.0.2", zones("b"), terminating)}, "10.1.0.1:8080 10.1.0.2:8080", ""},
		{"same node", "a", []discoveryv1.Endpoint{ep("10.1.0.1", zones("a"), nodes("n1")), ep("10.1.0.2", zones("a"), nodes("n2"))}, "10.1.0.1:8080", ""},
		{"several nodes in a hint", "a", []discoveryv1.Endpoint{ep("10.1.0.1", nodes("n2", "n1")), ep("10.1.0.2", nodes("n2"))}, "10.1.0.1:8080", ""},
		{"no hint for this node: the zone's", "a",
			[]discoveryv1.Endpoint{ep("10.1.0.1", zones("a"), nodes("n3")), ep("10.1.0.2", zones("b"), nodes("n2"))}, "10.1.0.1:8080", ""},
		{"one without a node hint: the zone's", "a",
			[]discoveryv1.Endpoint{ep("10.1.0.1", zones("b"), nodes("n1")), ep("10.1.0.2", zones("a"))}, "10.1.0.2:8080", ""},
		{"the policy Local has no topology", "a",
			[]discoveryv1.Endpoint{ep("10.1.0.1", zones("b"), on("n1")), ep("10.1.0.2", zones("a"), on("n2"))}, "10.1.0.2:8080", "10.1.0.1:8080*"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := New(Config{NodeName: "n1"})
			n := node("n1", "192.0.2.1")
			if tt.zone != "" {
				n.Labels[corev1.LabelTopologyZone] = tt.zone
			}
			m.SetNode(n)
			s := svc("web", "10.96.0.1", 80)
			local := corev1.ServiceInternalTrafficPolicyLocal
			s.Spec.InternalTrafficPolicy = &local
			m.SetService(s)
			m.SetSlice(eps("a", "web", tt.endpoints...))
			if got := cluster(t, m, "web"); got != tt.want {
				t.Errorf("cluster endpoints %q, want %q", got, tt.want)
			}
			if got := text(m.Service(key("web")).Ports[0].Backends[IPv4].Local); got != tt.local {
				t.Errorf("local endpoints %q, want %q", got, tt.local)
			}
		})
	}
}

// TestTopologyPerPort: the slices of one port say nothing of another's.
//
// Behaviour: 71.
func TestTopologyPerPort(t *testing.T) {
	m := New(Config{NodeName: "n1"})
	n := node("n1")
	n.Labels[corev1.LabelTopologyZone] = "a"
	m.SetNode(n)
	m.SetService(svc("web", "10.96.0.1", 80, 81))
	m.SetSlice(eps("a", "web", ep("10.1.0.1", zones("a")), ep("10.1.0.2", zones("b"))))
	other := eps("b", "web", ep("10.1.0.1", zones("a")), ep("10.1.0.2"))
	name := "p81"
	other.Ports[0].Name = &name
	m.SetSlice(other)
	m.Refresh()
	p := m.Service(key("web")).Ports
	if a, b := text(p[0].Backends[IPv4].Cluster), text(p[1].Backends[IPv4].Cluster); a != "10.1.0.1:8080" || b != "10.1.0.1:8080 10.1.0.2:8080" {
		t.Errorf("endpoints %q and %q", a, b)
	}
}

// TestNoNodeName: a model for no node in particular is on none that is hinted.
func TestNoNodeName(t *testing.T) {
	m := New(Config{})
	m.SetService(svc("web", "10.96.0.1", 80))
	m.SetSlice(eps("a", "web", ep("10.1.0.1", nodes(""), on("")), ep("10.1.0.2", nodes("n2"))))
	if got := cluster(t, m, "web"); got != "10.1.0.1:8080 10.1.0.2:8080" {
		t.Errorf("endpoints %q", got)
	}
}

// TestRepeatsInAnyOrder: which of two slices came first never decides between
// endpoints with one address.
//
// Behaviour: 66.
func TestRepeatsInAnyOrder(t *testing.T) {
	pairs := [][2]discoveryv1.Endpoint{
		{ep("10.1.0.1", zones("a")), ep("10.1.0.1", zones("b"))},
		{ep("10.1.0.1", zones("a")), ep("10.1.0.1")},
		{ep("10.1.0.1", zones("a"), nodes("n1")), ep("10.1.0.1", zones("a"))},
		{ep("10.1.0.1", on("n1"), zones("a")), ep("10.1.0.1", zones("b"))},
		{ep("10.1.0.1", conditions(false, true, true)), ep("10.1.0.1", conditions(false, true, false))},
		{ep("10.1.0.1", conditions(true, true, true)), ep("10.1.0.1", conditions(false, true, false))},
	}
	for i, pair := range pairs {
		var got [2]string
		for first := range 2 {
			m := New(Config{NodeName: "n1"})
			n := node("n1")
			n.Labels[corev1.LabelTopologyZone] = "a"
			m.SetNode(n)
			m.SetService(svc("web", "10.96.0.1", 80))
			m.SetSlice(eps("rest", "web", ep("10.1.0.9", zones("a"), nodes("n2"))))
			m.SetSlice(eps("x", "web", pair[first]))
			m.SetSlice(eps("y", "web", pair[1-first]))
			got[first] = cluster(t, m, "web")
		}
		if got[0] != got[1] {
			t.Errorf("pair %d: %q or %q", i, got[0], got[1])
		}
		// One on this node is known as such.
		if i == 3 && got[0] != "10.1.0.1:8080* 10.1.0.9:8080" {
			t.Errorf("pair %d: %q, want the hints of the one on this node", i, got[0])
		}
	}
}

// TestZoneChange: a new label of the node counts with the next Refresh, and only
// Services with hints are computed again.
//
// Behaviour: 73, 137.
func TestZoneChange(t *testing.T) {
	m := New(Config{NodeName: "n1"})
	for _, name := range []string{"web", "other"} {
		m.SetService(svc(name, map[string]string{"web": "10.96.0.1", "other": "10.96.0.2"}[name], 80))
	}
	m.SetSlice(eps("a", "web", ep("10.1.0.1", zones("a")), ep("10.1.0.2", zones("b"))))
	m.SetSlice(eps("b", "other", ep("10.1.0.3"), ep("10.1.0.4", nodes("n1"))))
	m.Refresh()
	other := m.Service(key("other"))
	for _, tt := range []struct{ zone, want string }{
		{"a", "10.1.0.1:8080"}, {"b", "10.1.0.2:8080"}, {"", "10.1.0.1:8080 10.1.0.2:8080"},
	} {
		n := node("n1")
		if tt.zone != "" {
			n.Labels[corev1.LabelTopologyZone] = tt.zone
		}
		m.SetNode(n)
		if _, ok := m.dirty[key("web")]; !ok || len(m.dirty) != 1 {
			t.Errorf("zone %q: %v are looked at, want the Service with hints for zones", tt.zone, m.dirty)
		}
		if got := cluster(t, m, "web"); got != tt.want || m.Node().Zone != tt.zone {
			t.Errorf("zone %q: endpoints %q, want %q", tt.zone, got, tt.want)
		}
	}
	if m.Service(key("other")) != other {
		t.Error("a Service without hints was computed again")
	}
}

// TestDrainingUDP: whatever serves but gets no new flows keeps those it has: it
// terminates, is in another zone, or is not ready.
//
// Behaviour: 65, 108.
func TestDrainingUDP(t *testing.T) {
	m := New(Config{NodeName: "n1"})
	n := node("n1")
	n.Labels[corev1.LabelTopologyZone] = "a"
	m.SetNode(n)
	s := svc("dns", "10.96.0.1", 80)
	s.Spec.Ports[0].Protocol = corev1.ProtocolUDP
	m.SetService(s)
	udp := corev1.ProtocolUDP
	set := func(endpoints ...discoveryv1.Endpoint) (string, string) {
		e := eps("a", "dns", endpoints...)
		e.Ports[0].Protocol = &udp
		m.SetSlice(e)
		m.Refresh()
		b := m.Service(key("dns")).Ports[0].Backends[IPv4]
		return text(b.Cluster), text(b.Draining)
	}
	if c, d := set(ep("10.1.0.1"), ep("10.1.0.2", conditions(false, true, true)), ep("10.1.0.3", conditions(false, false, true)),
		ep("10.1.0.4", conditions(false, true, false)), ep("10.1.0.5", conditions(false, false, false))); c != "10.1.0.1:8080" || d != "10.1.0.2:8080 10.1.0.4:8080" {
		t.Errorf("cluster %q, draining %q", c, d)
	}
	if c, d := set(ep("10.1.0.1", zones("a")), ep("10.1.0.2", zones("b"))); c != "10.1.0.1:8080" || d != "10.1.0.2:8080" {
		t.Errorf("with hints: cluster %q, draining %q", c, d)
	}
	if c, d := set(ep("10.1.0.1", conditions(false, true, true)), ep("10.1.0.2", conditions(false, true, false))); c != "10.1.0.1:8080" || d != "10.1.0.2:8080" {
		t.Errorf("as a fallback: cluster %q, draining %q", c, d)
	}
	// TCP has no such list.
	m.SetService(svc("web", "10.96.0.2", 80))
	m.SetSlice(eps("b", "web", ep("10.1.0.1"), ep("10.1.0.2", conditions(false, true, true))))
	m.Refresh()
	if d := m.Service(key("web")).Ports[0].Backends[IPv4].Draining; d.Len() != 0 {
		t.Errorf("TCP drains %q", text(d))
	}
}
