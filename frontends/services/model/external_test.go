package model

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// externalService is a Service of both families with every way in.
func externalService() *corev1.Service {
	s := svc("web", "10.96.0.1", 80, 81)
	s.Spec.ClusterIPs = append(s.Spec.ClusterIPs, "fd00:96::1")
	s.Spec.Type = corev1.ServiceTypeLoadBalancer
	return s
}

func ingress(ips ...string) (out []corev1.LoadBalancerIngress) {
	for _, text := range ips {
		ip, mode, _ := strings.Cut(text, "/")
		in := corev1.LoadBalancerIngress{IP: ip}
		if mode != "" {
			m := corev1.LoadBalancerIPMode(mode)
			in.IPMode = &m
		}
		out = append(out, in)
	}
	return out
}

// outcome is a Service alone in a model.
func outcome(t *testing.T, cfg Config, s *corev1.Service) *Service {
	t.Helper()
	m := New(cfg)
	m.SetService(s)
	m.Refresh()
	out := m.Service(Key{Namespace: s.Namespace, Name: s.Name})
	if out == nil {
		t.Fatal("no Service")
	}
	return out
}

func externalText(in [NumFamilies][]External) string {
	var out []string
	for _, all := range in {
		for _, e := range all {
			s := e.Addr.String()
			if e.LoadBalancer {
				s += "(lb)"
			}
			out = append(out, s)
		}
	}
	return strings.Join(out, " ")
}

// TestExternalAddresses: which addresses from outside a Service answers on.
//
// Behaviour: 14, 32, 35, 36, 38, 39, 40.
func TestExternalAddresses(t *testing.T) {
	for _, tt := range []struct {
		name     string
		external []string
		ingress  []corev1.LoadBalancerIngress
		single   bool
		ignore   bool
		want     string
		skipped  uint64
	}{
		{"external, both families, sorted", []string{"203.0.113.9", "2001:db8::1", "203.0.113.1"}, nil, false, false,
			"203.0.113.1 203.0.113.9 2001:db8::1", 0},
		{"a family that the Service has not", []string{"203.0.113.9", "2001:db8::1"}, ingress("2001:db8::2", "203.0.113.10"), true, false,
			"203.0.113.9 203.0.113.10(lb)", 0},
		{"bad ones are left out", []string{"nonsense", "203.0.113.9", "", "  ", "127.0.0.1", "0.0.0.0", "224.0.0.1"}, nil, false, false, "203.0.113.9", 4},
		{"odd ones are not bad", []string{" 203.000.113.009 ", "::ffff:203.0.113.8"}, nil, false, false, "203.0.113.8 203.0.113.9", 0},
		{"gate off", []string{"203.0.113.9", "nonsense"}, ingress("203.0.113.10"), false, true, "203.0.113.10(lb)", 0},
		{"load balancer modes", nil, ingress("203.0.113.1", "203.0.113.2/VIP", "203.0.113.3/Proxy", "2001:db8::3", "bad"), false, false,
			"203.0.113.1(lb) 203.0.113.2(lb) 2001:db8::3(lb)", 1},
		{"host name only", nil, []corev1.LoadBalancerIngress{{Hostname: "lb.example.com"}}, false, false, "", 0},
		{"both external and load balancer", []string{"203.0.113.1"}, ingress("203.0.113.1"), false, false, "203.0.113.1(lb)", 0},
		{"repeats", []string{"203.0.113.1", "203.0.113.1"}, ingress("203.0.113.2", "203.0.113.2"), false, false, "203.0.113.1 203.0.113.2(lb)", 0},
		{"the own ClusterIP", []string{"10.96.0.1"}, ingress("10.96.0.1", "203.0.113.2"), false, false, "203.0.113.2(lb)", 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := externalService()
			if tt.single {
				s.Spec.ClusterIPs = s.Spec.ClusterIPs[:1]
			}
			s.Spec.ExternalIPs, s.Status.LoadBalancer.Ingress = tt.external, tt.ingress
			m := New(Config{IgnoreExternalIPs: tt.ignore})
			m.SetService(s)
			m.Refresh()
			for _, p := range m.Service(key("web")).Ports {
				if got := externalText(p.External); got != tt.want {
					t.Errorf("port %s answers on %q, want %q", p.Name, got, tt.want)
				}
			}
			if got := m.Stats().Skipped; got != tt.skipped {
				t.Errorf("skipped %d, want %d", got, tt.skipped)
			}
		})
	}
}

// TestIngressOfAnyType: kube-proxy takes the addresses of load balancers
// whatever the Service's type is.
func TestIngressOfAnyType(t *testing.T) {
	s := svc("web", "10.96.0.1", 80)
	s.Status.LoadBalancer.Ingress = ingress("203.0.113.1")
	if got := externalText(outcome(t, Config{}, s).Ports[0].External); got != "203.0.113.1(lb)" {
		t.Errorf("answers on %q", got)
	}
}

// TestExternalPolicy: the external policy Local holds only where the Service can
// be reached from outside, and a raw external address is enough for that.
//
// Behaviour: 35, 55.
func TestExternalPolicy(t *testing.T) {
	for _, tt := range []struct {
		kind     corev1.ServiceType
		external []string
		want     bool
	}{
		{corev1.ServiceTypeClusterIP, nil, false},
		{"", nil, false},
		{corev1.ServiceTypeClusterIP, []string{"203.0.113.1"}, true},
		{"", []string{"203.0.113.1"}, true},
		{corev1.ServiceTypeNodePort, nil, true},
		{corev1.ServiceTypeLoadBalancer, nil, true},
	} {
		for _, ignore := range []bool{false, true} {
			s := svc("web", "10.96.0.1", 80)
			s.Spec.Type, s.Spec.ExternalIPs = tt.kind, tt.external
			s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
			if got := outcome(t, Config{IgnoreExternalIPs: ignore}, s).ExternalLocal; got != tt.want {
				t.Errorf("type %q with %v, external addresses ignored: %v: local %v, want %v", tt.kind, tt.external, ignore, got, tt.want)
			}
			s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster
			if outcome(t, Config{}, s).ExternalLocal {
				t.Errorf("type %q: policy Cluster is local", tt.kind)
			}
		}
	}
}

// TestSourceRanges: which ranges limit whom, on a node whose addresses are
// 192.0.2.1 and 2001:db8::1.
//
// Behaviour: 14, 44, 45, 46.
func TestSourceRanges(t *testing.T) {
	for _, tt := range []struct {
		name    string
		ranges  []string
		want    string
		skipped uint64
	}{
		{"none", nil, "[] []", 0},
		{"sorted, canonical, without repeats", []string{"203.0.113.128/25", "198.51.100.7/24", "203.0.113.128/25"}, "[198.51.100.0/24 203.0.113.128/25] []", 0},
		{"spaces and leading zeros", []string{" 203.0.113.000/025", "\t2001:db8:1::/48 "}, "[203.0.113.0/25] [2001:db8:1::/48]", 0},
		{"malformed ones are ignored", []string{"nonsense", "203.0.113.0/33", "203.0.113.0", "203.0.113.0/25"}, "[203.0.113.0/25] []", 3},
		{"nothing but malformed ones limits no source", []string{"nonsense", ""}, "[] []", 1},
		{"one of everything limits no source", []string{"203.0.113.0/25", "0.0.0.0/0", "2001:db8:1::/48"}, "[] [2001:db8:1::/48]", 0},
		{"the other family only", []string{"::/0"}, "[] []", 0},
		{"mapped", []string{"::ffff:203.0.113.0/121"}, "[203.0.113.0/25] []", 0},
		{"the node's own address lets the load balancer's in", []string{"192.0.2.0/24"}, "[192.0.2.0/24 203.0.113.1/32 203.0.113.2/32] []", 0},
		{"in its own family", []string{"2001:db8::/64", "198.51.100.0/24"}, "[198.51.100.0/24] [2001:db8::/64 2001:db8::a/128]", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := externalService()
			s.Spec.ExternalIPs = []string{"203.0.113.9"}
			s.Status.LoadBalancer.Ingress = ingress("203.0.113.2", "203.0.113.1", "203.0.113.3/Proxy", "2001:db8::a")
			s.Spec.LoadBalancerSourceRanges = tt.ranges
			m := New(Config{NodeName: "n1"})
			m.SetNode(node("n1", "192.0.2.1", "2001:db8::1"))
			m.SetService(s)
			m.Refresh()
			got := m.Service(key("web")).SourceRanges
			if text := fmt.Sprint(got[IPv4], got[IPv6]); text != tt.want {
				t.Errorf("ranges %s, want %s", text, tt.want)
			}
			for f := range got {
				if len(got[f]) == 0 && got[f] != nil {
					t.Errorf("%s: no range, but not nil", Family(f))
				}
			}
			if got := m.Stats().Skipped; got != tt.skipped {
				t.Errorf("skipped %d, want %d", got, tt.skipped)
			}
		})
	}
}

// TestSourceRangesFollowTheNode: only Services with ranges are computed again
// when the node's address changes, and bindAddress overrides it.
//
// Behaviour: 44.
func TestSourceRangesFollowTheNode(t *testing.T) {
	m := New(Config{NodeName: "n1"})
	s := externalService()
	s.Spec.LoadBalancerSourceRanges = []string{"192.0.2.0/24"}
	s.Status.LoadBalancer.Ingress = ingress("203.0.113.1")
	m.SetService(s)
	m.SetService(svc("other", "10.96.0.2", 80))
	m.Refresh()
	other := m.Service(key("other"))
	ranges := func() string { return fmt.Sprint(m.Service(key("web")).SourceRanges[IPv4]) }
	if ranges() != "[192.0.2.0/24]" {
		t.Errorf("ranges %s before the node is known", ranges())
	}
	m.SetNode(node("n1", "192.0.2.1"))
	if len(m.dirty) != 1 {
		t.Errorf("%d Services are looked at, want the one with ranges", len(m.dirty))
	}
	if c := m.Refresh(); len(c.Services) != 1 || ranges() != "[192.0.2.0/24 203.0.113.1/32]" {
		t.Errorf("ranges %s, changes %v", ranges(), c.Services)
	}
	m.SetNode(node("n1", "198.51.100.1"))
	if m.Refresh(); ranges() != "[192.0.2.0/24]" || m.Service(key("other")) != other {
		t.Errorf("ranges %s after the address changed", ranges())
	}
	bound := New(Config{NodeName: "n1", NodeAddresses: [NumFamilies]netip.Addr{IPv4: netip.MustParseAddr("192.0.2.1")}})
	bound.SetNode(node("n1", "198.51.100.1"))
	bound.SetService(s)
	bound.Refresh()
	if got := fmt.Sprint(bound.Service(key("web")).SourceRanges[IPv4]); got != "[192.0.2.0/24 203.0.113.1/32]" {
		t.Errorf("ranges %s with bindAddress", got)
	}
}

// TestAffinity: how long a client keeps its endpoint.
func TestAffinity(t *testing.T) {
	seconds := func(n int32) *corev1.SessionAffinityConfig {
		return &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: &n}}
	}
	for _, tt := range []struct {
		kind   corev1.ServiceAffinity
		config *corev1.SessionAffinityConfig
		want   time.Duration
	}{
		{"", nil, 0},
		{corev1.ServiceAffinityNone, seconds(7), 0},
		{corev1.ServiceAffinityClientIP, nil, 3 * time.Hour},
		{corev1.ServiceAffinityClientIP, &corev1.SessionAffinityConfig{}, 3 * time.Hour},
		{corev1.ServiceAffinityClientIP, &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{}}, 3 * time.Hour},
		{corev1.ServiceAffinityClientIP, seconds(7), 7 * time.Second},
		{corev1.ServiceAffinityClientIP, seconds(86400), 24 * time.Hour},
		{corev1.ServiceAffinityClientIP, seconds(0), 3 * time.Hour},
		{corev1.ServiceAffinityClientIP, seconds(-1), 3 * time.Hour},
	} {
		s := svc("web", "10.96.0.1", 80)
		s.Spec.SessionAffinity, s.Spec.SessionAffinityConfig = tt.kind, tt.config
		if got := outcome(t, Config{}, s).Affinity; got != tt.want {
			t.Errorf("%q with %+v: %s, want %s", tt.kind, tt.config, got, tt.want)
		}
	}
}

// TestNoNodePorts: a load balancer's Service without allocated NodePorts has
// none, and its addresses all the same.
//
// Behaviour: 28.
func TestNoNodePorts(t *testing.T) {
	s := externalService()
	no := false
	s.Spec.AllocateLoadBalancerNodePorts = &no
	s.Status.LoadBalancer.Ingress = ingress("203.0.113.1")
	for _, p := range outcome(t, Config{}, s).Ports {
		if p.NodePort != 0 || externalText(p.External) != "203.0.113.1(lb)" {
			t.Errorf("port %+v", p)
		}
	}
	s.Spec.Ports[0].NodePort = 30080
	if got := outcome(t, Config{}, s).Ports[0].NodePort; got != 30080 {
		t.Errorf("a load balancer's NodePort is %d", got)
	}
}

// TestHealthCheckNodePort: which Services have one, and what it counts.
//
// Behaviour: 121.
func TestHealthCheckNodePort(t *testing.T) {
	full := func() *corev1.Service {
		s := externalService()
		s.Spec.ExternalTrafficPolicy, s.Spec.HealthCheckNodePort = corev1.ServiceExternalTrafficPolicyLocal, 32000
		return s
	}
	m := New(Config{NodeName: "n1"})
	m.SetService(full())
	a := eps("a", "web", ep("10.1.0.1", on("n1")), ep("10.1.0.2", on("n1")), ep("10.1.0.3", on("n2")), ep("10.1.0.4"),
		ep("10.1.0.5", on("n1"), conditions(false, true, true)), ep("10.1.0.6", on("n1"), conditions(false, false, false)))
	// Another port of the same pods, one of them in two slices.
	b := eps("b", "web", ep("10.1.0.1", on("n1")), ep("10.1.0.7", on("n1")))
	other := "p81"
	b.Ports[0].Name = &other
	m.SetSlice(a)
	m.SetSlice(b)
	m.Refresh()
	if s := m.Service(key("web")); s.HealthCheckNodePort != 32000 || s.LocalReady != [NumFamilies]int{3} {
		t.Errorf("port %d, %v local ready", s.HealthCheckNodePort, s.LocalReady)
	}
	// Neither those of a family that the Service has not nor those of no port.
	single := full()
	single.Spec.ClusterIPs = single.Spec.ClusterIPs[:1]
	m.SetService(single)
	six := eps("c", "web", ep("fd00::1", on("n1")))
	six.AddressType = discoveryv1.AddressTypeIPv6
	m.SetSlice(six)
	portless := eps("d", "web", ep("10.1.0.9", on("n1")))
	portless.Ports = nil
	m.SetSlice(portless)
	m.Refresh()
	if got := m.Service(key("web")).LocalReady; got != [NumFamilies]int{3} {
		t.Errorf("%v local ready, want 3", got)
	}
	m.SetService(full())
	if m.Refresh(); m.Service(key("web")).LocalReady != [NumFamilies]int{3, 1} {
		t.Errorf("%v local ready in both families, want 3 and 1", m.Service(key("web")).LocalReady)
	}
	m.DeleteSlice(key("c"))
	// Nothing but terminating ones is nothing.
	m.SetSlice(eps("a", "web", ep("10.1.0.5", on("n1"), conditions(false, true, true))))
	m.DeleteSlice(key("b"))
	m.Refresh()
	if s := m.Service(key("web")); s.LocalReady != [NumFamilies]int{} || s.Ports[0].Backends[IPv4].Local.Len() != 1 {
		t.Errorf("%v local ready, endpoints %+v", s.LocalReady, s.Ports[0].Backends[IPv4])
	}
	for name, change := range map[string]func(*corev1.Service){
		"type NodePort":  func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeNodePort },
		"policy Cluster": func(s *corev1.Service) { s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster },
		"none allocated": func(s *corev1.Service) { s.Spec.HealthCheckNodePort = 0 },
		"out of range":   func(s *corev1.Service) { s.Spec.HealthCheckNodePort = 70000 },
	} {
		s := full()
		change(s)
		m.SetSlice(a)
		m.SetService(s)
		m.Refresh()
		if got := m.Service(key("web")); got.HealthCheckNodePort != 0 || got.LocalReady != [NumFamilies]int{} {
			t.Errorf("%s: port %d, %v local ready", name, got.HealthCheckNodePort, got.LocalReady)
		}
	}
	if m.Stats().Skipped != 2 {
		t.Errorf("skipped %d, want the port that is missing and the one out of range", m.Stats().Skipped)
	}
}
