package model

import (
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// at sets when a Service was created.
func at(s *corev1.Service, minute int) *corev1.Service {
	s.CreationTimestamp = metav1.NewTime(time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC))
	return s
}

// TestConflicts: the older of two Services has the address and the NodePort.
//
// Behaviour: 37.
func TestConflicts(t *testing.T) {
	m, log := newLogged()
	ports := func(name string) (ip, other netip.Addr, node uint16) {
		s := m.Service(key(name))
		if s == nil {
			return
		}
		return s.Ports[0].ClusterIPs[IPv4], s.Ports[1].ClusterIPs[IPv4], s.Ports[0].NodePort
	}
	young := at(svc("a-young", "10.96.0.1", 80, 81), 2)
	old := at(svc("b-old", "10.96.0.1", 80, 82), 1)
	young.Spec.Ports[0].NodePort, old.Spec.Ports[0].NodePort = 30080, 30080
	m.SetService(young)
	m.Refresh()
	if ip, _, node := ports("a-young"); !ip.IsValid() || node != 30080 {
		t.Fatal("the only claimant does not have its address")
	}
	m.SetService(old)
	if c := m.Refresh(); len(c.Services) != 2 {
		t.Errorf("changes %+v, want both Services", c.Services)
	}
	if ip, other, node := ports("a-young"); ip.IsValid() || !other.IsValid() || node != 0 {
		t.Errorf("the younger Service has %v %v %d", ip, other, node)
	}
	if ip, _, node := ports("b-old"); !ip.IsValid() || node != 30080 {
		t.Errorf("the older Service has %v %d", ip, node)
	}
	if !strings.Contains(log.String(), "winner=default/b-old loser=default/a-young") || m.Stats().Conflicts != 2 {
		t.Errorf("conflicts %d, log:\n%s", m.Stats().Conflicts, log)
	}
	m.DeleteService(key("b-old"))
	m.Refresh()
	if ip, _, node := ports("a-young"); !ip.IsValid() || node != 30080 || m.Stats().Conflicts != 0 {
		t.Errorf("after the older one is gone: %v %d, conflicts %d", ip, node, m.Stats().Conflicts)
	}
}

// TestConflictsDoNotDependOnOrder: of two as old, the name decides.
//
// Behaviour: 37.
func TestConflictsDoNotDependOnOrder(t *testing.T) {
	a, b := svc("a", "10.96.0.1", 80), svc("b", "10.96.0.1", 80)
	var got []Snapshot
	for _, order := range [][]*corev1.Service{{a, b}, {b, a}} {
		m := New(Config{})
		for _, s := range order {
			m.SetService(s)
			m.Refresh()
		}
		s := m.Snapshot()
		s.Revision = 0
		got = append(got, s)
	}
	if !reflect.DeepEqual(got[0], got[1]) {
		t.Errorf("the outcome depends on the order of events:\n%+v\n%+v", got[0], got[1])
	}
}

// TestOneSpaceOfAddresses: any kind of address conflicts with any other, port by
// port, and with no NodePort. The older Service wins, but for the one whose ClusterIP
// it is.
//
// Behaviour: 27, 37.
func TestOneSpaceOfAddresses(t *testing.T) {
	const shared = "203.0.113.1"
	with := func(kind, name string, minute int) *corev1.Service {
		s := at(svc(name, "10.96.0."+fmt.Sprint(minute), 80, int32(80+minute)), minute)
		switch kind {
		case "cluster":
			s.Spec.ClusterIP, s.Spec.ClusterIPs = shared, []string{shared}
		case "external":
			s.Spec.ExternalIPs = []string{shared}
		case "loadbalancer":
			s.Status.LoadBalancer.Ingress = ingress(shared)
		case "nodeport":
			s.Spec.Ports[0].NodePort = 80
		}
		return s
	}
	// serves reports whether a port has the shared address or NodePort 80.
	serves := func(p Port) bool {
		return p.ClusterIPs[IPv4] == netip.MustParseAddr(shared) || len(p.External[IPv4]) > 0 || p.NodePort == 80
	}
	kinds := []string{"cluster", "external", "loadbalancer", "nodeport"}
	for _, old := range kinds {
		for _, young := range kinds {
			m := New(Config{})
			m.SetService(with(young, "a", 2))
			m.Refresh()
			m.SetService(with(old, "b", 1))
			m.Refresh()
			a, b := m.Service(key("a")).Ports, m.Service(key("b")).Ports
			if young == "cluster" && old != "cluster" {
				a, b = b, a
			}
			apart := (old == "nodeport") != (young == "nodeport")
			if got := serves(a[0]); got != apart {
				t.Errorf("%s is older than %s: port 80 of the loser is served %v, want %v", old, young, got, apart)
			}
			// The second ports are their own, but a NodePort is the first one's alone.
			if !serves(b[0]) || serves(m.Service(key("a")).Ports[1]) != (young != "nodeport") || serves(m.Service(key("b")).Ports[1]) != (old != "nodeport") {
				t.Errorf("%s is older than %s: younger %+v, older %+v", old, young, a, b)
			}
		}
	}
}

// TestSomeOfTheAddresses: a Service keeps what no other Service has.
//
// Behaviour: 37.
func TestSomeOfTheAddresses(t *testing.T) {
	m := New(Config{})
	old, young := at(svc("old", "10.96.0.1", 80), 1), at(svc("young", "10.96.0.2", 80, 81), 2)
	old.Spec.ExternalIPs = []string{"203.0.113.2"}
	young.Spec.ExternalIPs = []string{"203.0.113.1", "203.0.113.2", "203.0.113.3"}
	m.SetService(old)
	m.SetService(young)
	m.Refresh()
	p := m.Service(key("young")).Ports
	if a, b := externalText(p[0].External), externalText(p[1].External); a != "203.0.113.1 203.0.113.3" || b != "203.0.113.1 203.0.113.2 203.0.113.3" {
		t.Errorf("port 80 has %q, port 81 %q", a, b)
	}
	// A ClusterIP is used again by another Service at once.
	m.DeleteService(key("old"))
	next := at(svc("next", "10.96.0.1", 80), 3)
	m.SetService(next)
	c := m.Refresh()
	if len(c.Services) != 3 || !m.Service(key("next")).Ports[0].ClusterIPs[IPv4].IsValid() {
		t.Errorf("changes %+v", c.Services)
	}
	if got := externalText(m.Service(key("young")).Ports[0].External); got != "203.0.113.1 203.0.113.2 203.0.113.3" {
		t.Errorf("port 80 has %q after the older one is gone", got)
	}
}

// TestNoClaimWithoutFamily: what a Service could not serve it does not keep from
// others.
//
// Behaviour: 32, 37.
func TestNoClaimWithoutFamily(t *testing.T) {
	m := New(Config{})
	old, young := at(svc("old", "10.96.0.1", 80), 1), at(svc("young", "10.96.0.2", 80), 2)
	old.Spec.ExternalIPs, young.Spec.ExternalIPs = []string{"2001:db8::1"}, []string{"2001:db8::1"}
	young.Spec.ClusterIPs = append(young.Spec.ClusterIPs, "fd00::2")
	m.SetService(old)
	m.SetService(young)
	m.Refresh()
	if a, b := externalText(m.Service(key("old")).Ports[0].External), externalText(m.Service(key("young")).Ports[0].External); a != "" || b != "2001:db8::1" {
		t.Errorf("the older one has %q, the younger %q", a, b)
	}
}

// TestNotices: who loses hears of it once for each change, with the holder's
// name and what it is about.
//
// Behaviour: 37.
func TestNotices(t *testing.T) {
	var got []Notice
	m := New(Config{Notify: func(n Notice) { got = append(got, n) }})
	refresh := func() (out []Notice) {
		m.Refresh()
		out, got = got, nil
		return out
	}
	old, young := at(svc("old", "10.96.0.1", 80, 81), 2), at(svc("young", "10.96.0.2", 80, 81), 3)
	old.Spec.ExternalIPs, young.Spec.ExternalIPs = []string{"203.0.113.1"}, []string{"203.0.113.1"}
	m.SetService(young)
	if n := refresh(); n != nil {
		t.Errorf("alone: %+v", n)
	}
	m.SetService(old)
	n := refresh()
	if len(n) != 1 || n[0].Service != key("young") || n[0].Reason != "AddressConflict" ||
		!strings.Contains(n[0].Message, "Service default/old already has 203.0.113.1:80/tcp, 203.0.113.1:81/tcp") {
		t.Fatalf("notices %+v", n)
	}
	// Other changes of either, and of their endpoints, change nothing.
	young.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
	m.SetService(young)
	m.SetSlice(eps("a", "old", ep("10.1.0.1")))
	old.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
	m.SetService(old)
	if n := refresh(); n != nil {
		t.Errorf("after changes that do not matter: %+v", n)
	}
	// Another holder is news for both of the others.
	m.SetService(func() *corev1.Service {
		s := at(svc("oldest", "10.96.0.3", 80), 1)
		s.Spec.ExternalIPs = []string{"203.0.113.1"}
		return s
	}())
	if n := refresh(); len(n) != 2 || n[0].Service != key("old") || n[1].Service != key("young") || strings.Contains(n[1].Message, ":81") {
		t.Errorf("notices %+v", n)
	}
	// So is losing again.
	m.DeleteService(key("young"))
	refresh()
	m.SetService(young)
	if n := refresh(); len(n) != 2 {
		t.Errorf("notices %+v, want one for each holder", n)
	}
	for i := range 20 {
		old.Spec.Ports = append(old.Spec.Ports, corev1.ServicePort{Name: fmt.Sprint("q", i), Port: int32(1000 + i)})
		young.Spec.Ports = append(young.Spec.Ports, corev1.ServicePort{Name: fmt.Sprint("q", i), Port: int32(1000 + i)})
	}
	m.SetService(old)
	m.SetService(young)
	if n := refresh(); len(n) != 1 || len(n[0].Message) > 1000 || !strings.Contains(n[0].Message, " and 12 more") {
		t.Errorf("notices %+v", n)
	}
}

// TestCrowdedClaim: many Services that all want one address do not make each
// other's changes expensive.
func TestCrowdedClaim(t *testing.T) {
	const n = 5000
	notices := 0
	m := New(Config{Notify: func(Notice) { notices++ }})
	services, _ := bigObjects(n, 0)
	for _, s := range services {
		m.SetService(s)
	}
	if m.Refresh(); notices != n-1 || m.Stats().Conflicts != 2*(n-1) {
		t.Fatalf("%d notices, %d conflicts", notices, m.Stats().Conflicts)
	}
	for i := range 20 {
		s := services[n-1-i].DeepCopy()
		s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
		m.SetService(s)
		if c := m.Refresh(); len(c.Services) != 1 || notices != n-1 {
			t.Fatalf("%d changes, %d notices", len(c.Services), notices)
		}
	}
}

// TestReporters has a conflict on each of five nodes: those of the first three endpoints
// report it, whichever of the Services has endpoints.
func TestReporters(t *testing.T) {
	old, young := at(svc("old", "10.96.0.1", 80), 2), at(svc("young", "10.96.0.2", 80), 3)
	old.Spec.ExternalIPs, young.Spec.ExternalIPs = []string{"203.0.113.1"}, []string{"203.0.113.1"}
	nodes := []string{"n1", "n2", "n3", "n4", "n5"}
	on := func(addr, node string) discoveryv1.Endpoint {
		return ep(addr, func(e *discoveryv1.Endpoint) { e.NodeName = &node })
	}
	// In two slices, so that the order is not that of the slices.
	slices := func(service string) []*discoveryv1.EndpointSlice {
		return []*discoveryv1.EndpointSlice{
			eps(service+"-a", service, on("10.1.0.5", "n5"), on("10.1.0.1", "n1"), on("10.1.0.3", "n3")), eps(service+"-b", service, on("10.1.0.4", "n4"), on("10.1.0.2", "n2")),
		}
	}
	for of, want := range map[string]string{"old": "n1 n2 n3", "young": "n1 n2 n3", "none": ""} {
		var reporters []string
		for _, node := range nodes {
			notices := 0
			m := New(Config{NodeName: node, Notify: func(n Notice) {
				if notices++; n.Reporter {
					reporters = append(reporters, node)
				}
			}})
			m.SetService(old)
			m.SetService(young)
			for _, s := range slices(of) {
				m.SetSlice(s)
			}
			if m.Refresh(); notices != 1 {
				t.Errorf("%d notices on %s", notices, node)
			}
		}
		if got := strings.Join(reporters, " "); got != want {
			t.Errorf("endpoints of %s: reported by %q, want %q", of, got, want)
		}
	}
}
