package model

import (
	"fmt"
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// TestProtocols: one number, and one NodePort, for each protocol.
//
// Behaviour: 5, 6, 30.
func TestProtocols(t *testing.T) {
	s := svc("dns", "10.96.0.1", 53, 53, 53)
	e := eps("a", "dns", ep("10.1.0.1"))
	e.Ports = nil
	for i, p := range []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP} {
		s.Spec.Ports[i].Protocol, s.Spec.Ports[i].NodePort = p, 30053
		name, number := "p53", int32(5300+i)
		e.Ports = append(e.Ports, discoveryv1.EndpointPort{Name: &name, Protocol: &p, Port: &number})
	}
	m := New(Config{})
	m.SetService(s)
	m.SetSlice(e)
	m.Refresh()
	var got []string
	for _, p := range m.Service(key("dns")).Ports {
		got = append(got, fmt.Sprintf("%s %d %d %s", p.Protocol, p.Number, p.NodePort, text(p.Backends[IPv4].Cluster)))
	}
	if want := "[tcp 53 30053 10.1.0.1:5300 udp 53 30053 10.1.0.1:5301 sctp 53 30053 10.1.0.1:5302]"; fmt.Sprint(got) != want {
		t.Errorf("ports %v, want %s", got, want)
	}
	if s := m.Stats(); s.Skipped != 0 || s.Conflicts != 0 {
		t.Errorf("stats %+v", s)
	}
}

// TestTargetPortIsNotUsed: the number comes from the slice's port with the same
// name, and a name that the slice has not means no endpoint.
//
// Behaviour: 5.
func TestTargetPortIsNotUsed(t *testing.T) {
	m := New(Config{})
	s := svc("web", "10.96.0.1", 80, 81)
	s.Spec.Ports[0].TargetPort.IntVal = 9999
	s.Spec.Ports[1].TargetPort.IntVal = 8080
	m.SetService(s)
	m.SetSlice(eps("a", "web", ep("10.1.0.1")))
	m.Refresh()
	p := m.Service(key("web")).Ports
	if a, b := text(p[0].Backends[IPv4].Cluster), text(p[1].Backends[IPv4].Cluster); a != "10.1.0.1:8080" || b != "" {
		t.Errorf("endpoints %q and %q", a, b)
	}
}

// TestRepeatedPorts: of two ports that repeat each other the first counts, and
// of a repeated NodePort only that is left out.
func TestRepeatedPorts(t *testing.T) {
	m, _ := newLogged()
	s := svc("web", "10.96.0.1", 80, 81, 82, 81, 83)
	s.Spec.Ports[0].NodePort, s.Spec.Ports[1].NodePort = 30080, 30080
	// Repeats the first one's NodePort, too.
	s.Spec.Ports[3].Name, s.Spec.Ports[3].NodePort = "again", 30080
	s.Spec.Ports[4].Name, s.Spec.Ports[4].NodePort = "p82", -1
	m.SetService(s)
	m.Refresh()
	var got []string
	for _, p := range m.Service(key("web")).Ports {
		got = append(got, fmt.Sprintf("%s %d %d", p.Name, p.Number, p.NodePort))
	}
	if want := "[p80 80 30080 p81 81 0 p82 82 0]"; fmt.Sprint(got) != want || m.Stats().Skipped != 4 {
		t.Errorf("ports %v, want %s; skipped %d", got, want, m.Stats().Skipped)
	}
}

// TestFamilies: which ClusterIP is of which family.
//
// Behaviour: 14, 97, 101.
func TestFamilies(t *testing.T) {
	const four, six = corev1.IPv4Protocol, corev1.IPv6Protocol
	for _, tt := range []struct {
		name     string
		ip       string
		ips      []string
		families []corev1.IPFamily
		want     string
		skipped  uint64
	}{
		{"dual stack", "10.96.0.1", []string{"10.96.0.1", "fd00::1"}, []corev1.IPFamily{four, six}, "[10.96.0.1 fd00::1]", 0},
		{"IPv6 first", "fd00::1", []string{"fd00::1", "010.096.0.1"}, []corev1.IPFamily{six, four}, "[10.96.0.1 fd00::1]", 0},
		{"one family", "10.96.0.1", []string{"10.96.0.1", "fd00::1"}, []corev1.IPFamily{four}, "[10.96.0.1 invalid IP]", 0},
		{"wrong family", "10.96.0.1", []string{"10.96.0.1", "fd00::1"}, []corev1.IPFamily{four, four}, "[10.96.0.1 invalid IP]", 1},
		{"not said", "10.96.0.1", []string{"10.96.0.1", "fd00::1"}, nil, "[10.96.0.1 fd00::1]", 0},
		{"old object", "fd00::1", nil, nil, "[invalid IP fd00::1]", 0},
		{"headless", "None", []string{"None"}, []corev1.IPFamily{four, six}, "", 0},
		{"headless in the old field", "None", nil, nil, "", 0},
		{"headless, whatever the other field says", "None", []string{"10.96.0.1"}, nil, "", 0},
		{"not allocated yet", "", nil, []corev1.IPFamily{four}, "", 0},
		{"nonsense", "x", []string{"x"}, []corev1.IPFamily{four}, "", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := svc("web", tt.ip, 80)
			s.Spec.ClusterIPs, s.Spec.IPFamilies = tt.ips, tt.families
			m := New(Config{})
			m.SetService(s)
			m.Refresh()
			var got string
			if s := m.Service(key("web")); s != nil {
				got = fmt.Sprint(s.ClusterIPs)
			}
			if got != tt.want || m.Stats().Skipped != tt.skipped {
				t.Errorf("ClusterIPs %s, want %s; skipped %d, want %d", got, tt.want, m.Stats().Skipped, tt.skipped)
			}
		})
	}
}

// TestOneFamilyOfEndpoints: the families of a dual-stack Service are apart.
//
// Behaviour: 98.
func TestOneFamilyOfEndpoints(t *testing.T) {
	m := New(Config{})
	s := svc("web", "10.96.0.1", 80)
	s.Spec.ClusterIPs = append(s.Spec.ClusterIPs, "fd00:96::1")
	m.SetService(s)
	m.SetSlice(eps("a", "web", ep("10.1.0.1")))
	m.Refresh()
	p := m.Service(key("web")).Ports[0]
	if !p.ClusterIPs[IPv4].IsValid() || !p.ClusterIPs[IPv6].IsValid() || p.Backends[IPv4].Cluster.Len() != 1 || p.Backends[IPv6].Cluster.Len() != 0 {
		t.Errorf("port %+v", p)
	}
	six := eps("b", "web", ep("fd00::1"))
	six.AddressType = discoveryv1.AddressTypeIPv6
	m.SetSlice(six)
	m.Refresh()
	if got := text(m.Service(key("web")).Ports[0].Backends[IPv6].Cluster); got != "[fd00::1]:8080" {
		t.Errorf("endpoints %q", got)
	}
	// Slices of a family that the Service has not are of no use.
	m.SetService(svc("web", "10.96.0.1", 80))
	m.Refresh()
	if p := m.Service(key("web")).Ports[0]; p.Backends[IPv6].Cluster.Len() != 0 {
		t.Errorf("port %+v", p)
	}
}

// TestLabelAddedLater: a Service that another proxy takes over, or that becomes
// an ExternalName, goes, and comes back.
//
// Behaviour: 101, 102.
func TestLabelAddedLater(t *testing.T) {
	m := New(Config{})
	s := svc("web", "10.96.0.1", 80)
	m.SetService(s)
	m.SetSlice(eps("a", "web", ep("10.1.0.1")))
	m.Refresh()
	foreign := s.DeepCopy()
	foreign.Labels = map[string]string{proxyNameLabel: "other"}
	m.SetService(foreign)
	m.SetService(foreign)
	if c := m.Refresh(); len(c.Services) != 1 || c.Services[0].New != nil || m.Stats().Services != 0 || m.Stats().Slices != 1 {
		t.Errorf("changes %+v, stats %+v", c.Services, m.Stats())
	}
	m.SetService(s)
	if got := cluster(t, m, "web"); got != "10.1.0.1:8080" {
		t.Errorf("endpoints %q", got)
	}
}

// TestHugeSlice: more endpoints in one slice than the API server allows, and
// more of a Service than can be used.
func TestHugeSlice(t *testing.T) {
	endpoints := func(n int) (out []discoveryv1.Endpoint) {
		for i := range n {
			a := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
			out = append(out, ep(a.String(), zones(fmt.Sprint("z", i%7000))))
		}
		return out
	}
	m, _ := newLogged()
	m.SetService(svc("web", "10.96.0.1", 80))
	m.SetSlice(eps("a", "web", endpoints(10_000)...))
	m.Refresh()
	if got := m.Service(key("web")).Ports[0].Backends[IPv4].Cluster.Len(); got != 10_000 {
		t.Errorf("%d endpoints", got)
	}
	if got := len(m.slices[key("a")].zones); got != 7000 {
		t.Errorf("%d lists of zones are kept, want the 7000 that differ", got)
	}
	m.SetSlice(eps("a", "web", endpoints(MaxEndpoints+10)...))
	m.Refresh()
	m.SetSlice(eps("a", "web", endpoints(MaxEndpoints+9)...))
	m.Refresh()
	if got := m.Service(key("web")).Ports[0].Backends[IPv4].Cluster.Len(); got != MaxEndpoints || m.Stats().Skipped != 1 {
		t.Errorf("%d endpoints, %d reports", got, m.Stats().Skipped)
	}
	// Once there is room, those that were left out are used.
	m.SetSlice(eps("a", "web", endpoints(MaxEndpoints + 1)[1:]...))
	m.Refresh()
	list := m.Service(key("web")).Ports[0].Backends[IPv4].Cluster
	if list.Len() != MaxEndpoints || !list.Has(netip.MustParseAddrPort("10.4.0.0:8080")) {
		t.Errorf("%d endpoints, the last one is not used", list.Len())
	}
}
