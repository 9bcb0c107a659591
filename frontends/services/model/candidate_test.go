package model

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
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
				m.largeSize = large // with kept merged lists
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

// TestCandidatesWithoutPort: an endpoint in a slice without the port of the Service is a candidate,
// and the reason names the ports that there are.
func TestCandidatesWithoutPort(t *testing.T) {
	named := func(s *discoveryv1.EndpointSlice, names ...string) *discoveryv1.EndpointSlice {
		s.Ports = nil
		for _, n := range names {
			s.Ports = append(s.Ports, discoveryv1.EndpointPort{Name: new(n), Protocol: new(corev1.ProtocolTCP), Port: new(int32(8080))})
		}
		return s
	}
	const advice = "; compare the Service's targetPort with the names of its pods' ports"
	for _, tt := range []struct {
		name   string
		slices []*discoveryv1.EndpointSlice
		want   []string
	}{
		{"the name", []*discoveryv1.EndpointSlice{named(eps("a", "web", ep("10.1.0.1")), "http")}, []string{"10.1.0.1:8080 "}},
		{
			"another name", []*discoveryv1.EndpointSlice{named(eps("a", "web", ep("10.1.0.2"), ep("10.1.0.1")), "https", "metrics")},
			[]string{
				"10.1.0.1:0 no EndpointSlice has it with port http/tcp: the slices have https/tcp, metrics/tcp" + advice,
				"10.1.0.2:0 no EndpointSlice has it with port http/tcp: the slices have https/tcp, metrics/tcp" + advice,
			},
		},
		{
			"no port", []*discoveryv1.EndpointSlice{named(eps("a", "web", ep("10.1.0.1")))},
			[]string{"10.1.0.1:0 no EndpointSlice has it with port http/tcp: the slices have none" + advice},
		},
		{
			"one of two slices", []*discoveryv1.EndpointSlice{named(eps("a", "web", ep("10.1.0.1")), "http"), named(eps("b", "web", ep("10.1.0.1"), ep("10.1.0.2")), "")},
			[]string{"10.1.0.1:8080 ", "10.1.0.2:0 no EndpointSlice has it with port http/tcp: the slices have (no name)/tcp" + advice},
		},
	} {
		m := New(Config{NodeName: "n1"})
		s := svc("web", "10.96.0.1", 80)
		s.Spec.Ports[0].Name = "http"
		m.SetService(s)
		for _, o := range tt.slices {
			m.SetSlice(o)
		}
		all, _ := m.Candidates(Key{Namespace: s.Namespace, Name: s.Name})
		var got []string
		for _, c := range all {
			var back Candidate
			text, err := json.Marshal(&c)
			if err == nil {
				err = json.Unmarshal(text, &back)
			}
			if err != nil || back != c {
				t.Errorf("%s: %+v comes back as %+v, %v", tt.name, c, back, err)
			}
			got = append(got, c.Addr.String()+" "+c.Why(false))
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s:\n got %q\nwant %q", tt.name, got, tt.want)
		}
	}
}

// TestWhy: the reason is that of the traffic policy.
func TestWhy(t *testing.T) {
	here := Endpoint{Local: true}
	for _, tt := range []struct {
		candidate Candidate
		local     bool
		want      string
	}{
		{Candidate{Cluster: true}, false, ""},
		{Candidate{Cluster: true}, true, "on another node (traffic policy Local)"},
		{Candidate{Endpoint: here, Cluster: true, ForLocal: true}, true, ""},
		{Candidate{Endpoint: here, ForLocal: true, Excluded: OtherZone}, true, ""},
		{Candidate{Endpoint: here, Excluded: Terminating}, true, "terminating"},
		{Candidate{Excluded: OtherNode}, false, "hinted to other nodes"},
		{Candidate{Excluded: NotReady}, true, "on another node (traffic policy Local)"},
		{Candidate{Endpoint: here, Cluster: true}, true, "not ready"},
		{Candidate{Excluded: 99}, false, "unknown reason"},
	} {
		if got := tt.candidate.Why(tt.local); got != tt.want {
			t.Errorf("%+v under Local %t: %q, want %q", tt.candidate, tt.local, got, tt.want)
		}
	}
}
