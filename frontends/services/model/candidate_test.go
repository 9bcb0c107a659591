package model

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// TestCandidates compares the candidates of a Service with the lists of Backends, and looks at
// why the others are excluded.
func TestCandidates(t *testing.T) {
	unready, terminating, gone := conditions(false, false, false), conditions(false, true, true), conditions(false, false, true)
	for _, tt := range []struct {
		name      string
		endpoints []discoveryv1.Endpoint
		want      string
	}{
		{"all ready", []discoveryv1.Endpoint{ep("10.1.0.1"), ep("10.1.0.2")}, "1:0 2:0"},
		{"one is not ready, others terminate", []discoveryv1.Endpoint{ep("10.1.0.1"), ep("10.1.0.2", unready), ep("10.1.0.3", terminating), ep("10.1.0.4", gone)}, "1:0 2:1 3:2 4:2"},
		{"all terminate", []discoveryv1.Endpoint{ep("10.1.0.3", terminating), ep("10.1.0.4", gone)}, "3:0 4:2"},
		{"other nodes", []discoveryv1.Endpoint{ep("10.1.0.1", nodes("n1")), ep("10.1.0.2", nodes("n2"))}, "1:0 2:3"},
		{"other zones", []discoveryv1.Endpoint{ep("10.1.0.1", zones("a")), ep("10.1.0.2", zones("b")), ep("10.1.0.3", zones("b"), unready)}, "1:0 2:4 3:1"},
		{"twice", []discoveryv1.Endpoint{ep("10.1.0.1", unready), ep("10.1.0.1")}, "1:0"},
		{"Local", []discoveryv1.Endpoint{ep("10.1.0.1", on("n1")), ep("10.1.0.2", on("n2"))}, "1:0 2:0"},
	} {
		for _, large := range []int{0, 1} {
			m := New(Config{NodeName: "n1"})
			if large > 0 {
				m.largeSize = large // computed incrementally
			}
			n := node("n1", "192.0.2.1")
			n.Labels[corev1.LabelTopologyZone] = "a"
			m.SetNode(n)
			s := svc("web", "10.96.0.1", 80)
			local := corev1.ServiceInternalTrafficPolicyLocal
			s.Spec.InternalTrafficPolicy = &local
			m.SetService(s)
			m.SetSlice(eps("a", "web", tt.endpoints...))
			m.Refresh()
			key := Key{Namespace: s.Namespace, Name: s.Name}
			all, ok := m.Candidates(key)
			if !ok {
				t.Fatalf("%s: the Service has no candidates", tt.name)
			}
			b := &m.Service(key).Ports[0].Backends[IPv4]
			var got []string
			for _, c := range all {
				addr := c.Addr.Addr().As4()
				got = append(got, fmt.Sprintf("%d:%d", addr[3], c.Excluded))
				if c.Cluster != b.Cluster.Has(c.Addr) || c.ForLocal != b.Local.Has(c.Addr) || c.Draining != b.Draining.Has(c.Addr) || c.Cluster != (c.Excluded == NotExcluded) {
					t.Errorf("%s: %+v: the lists differ from the Service's", tt.name, c)
				}
			}
			if text := strings.Join(got, " "); text != tt.want {
				t.Errorf("%s: candidates %s, want %s", tt.name, text, tt.want)
			}
		}
	}
	if _, ok := New(Config{}).Candidates(Key{Namespace: "default", Name: "none"}); ok {
		t.Error("a Service that does not exist has candidates")
	}
}

// TestFind finds a Service by each of its addresses, and not by others.
func TestFind(t *testing.T) {
	m := New(Config{NodeName: "n1"})
	s := svc("web", "10.96.0.1", 80)
	s.Spec.Type = corev1.ServiceTypeNodePort
	s.Spec.Ports[0].Name, s.Spec.Ports[0].NodePort = "http", 30080
	s.Spec.ExternalIPs = []string{"192.0.2.9"}
	m.SetService(s)
	m.Refresh()
	for _, tt := range []struct {
		addr     string
		protocol Protocol
		port     uint16
		want     bool
	}{
		{"10.96.0.1", TCP, 80, true},
		{"192.0.2.9", TCP, 80, true},
		{"", TCP, 30080, true},
		{"", TCP, 80, false},
		{"10.96.0.1", TCP, 30080, false},
		{"10.96.0.1", UDP, 80, false},
		{"10.96.0.2", TCP, 80, false},
	} {
		var addr netip.Addr
		if tt.addr != "" {
			addr = netip.MustParseAddr(tt.addr)
		}
		key, name, ok := m.Find(addr, tt.protocol, tt.port)
		if ok != tt.want || ok && (key != Key{Namespace: s.Namespace, Name: "web"} || name != "http") {
			t.Errorf("%s:%d/%s: %s %q, %t; want %t", tt.addr, tt.port, tt.protocol, key, name, ok, tt.want)
		}
	}
}
