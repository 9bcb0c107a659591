package model

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// svc returns a Service "default/name" with one TCP port per number, named after it.
func svc(name, clusterIP string, ports ...int32) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	s.Spec.ClusterIP, s.Spec.ClusterIPs = clusterIP, []string{clusterIP}
	for _, n := range ports {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: fmt.Sprint("p", n), Port: n})
	}
	return s
}

// eps returns a slice of a Service with a port p80 -> 8080.
func eps(name, service string, endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	port, pname := int32(8080), "p80"
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name,
			Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &pname, Port: &port}},
		Endpoints:   endpoints,
	}
}

func ep(addr string, options ...func(*discoveryv1.Endpoint)) discoveryv1.Endpoint {
	e := discoveryv1.Endpoint{Addresses: []string{addr}}
	for _, o := range options {
		o(&e)
	}
	return e
}

func conditions(ready, serving, terminating bool) func(*discoveryv1.Endpoint) {
	return func(e *discoveryv1.Endpoint) {
		e.Conditions = discoveryv1.EndpointConditions{Ready: &ready, Serving: &serving, Terminating: &terminating}
	}
}

func on(node string) func(*discoveryv1.Endpoint) {
	return func(e *discoveryv1.Endpoint) { e.NodeName = &node }
}

func key(name string) Key { return Key{Namespace: "default", Name: name} }

// text lists endpoints for comparison.
func text(list Endpoints) string {
	in := slices.Collect(list.All())
	var out []string
	for _, e := range in {
		s := e.Addr.String()
		if e.Local {
			s += "*"
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

func cluster(t *testing.T, m *Model, name string) string {
	t.Helper()
	m.Refresh()
	s := m.Service(key(name))
	if s == nil {
		t.Fatalf("no service %s", name)
	}
	return text(s.Ports[0].Backends[IPv4].Cluster)
}

func newLogged() (*Model, *bytes.Buffer) {
	var b bytes.Buffer
	return New(Config{NodeName: "n1", Logger: slog.New(slog.NewTextHandler(&b, nil))}), &b
}

// TestReadiness: which endpoints of one slice are used, by the conditions.
//
// Behaviour: 14, 60, 61, 62, 63, 64, 65, 66.
func TestReadiness(t *testing.T) {
	no, yes := false, true
	for _, tt := range []struct {
		name      string
		endpoints []discoveryv1.Endpoint
		want      string
		local     string
	}{
		{"nil conditions are ready", []discoveryv1.Endpoint{ep("10.1.0.1")}, "10.1.0.1:8080", ""},
		{"only ready", []discoveryv1.Endpoint{ep("10.1.0.1"), ep("10.1.0.2", conditions(false, false, false))}, "10.1.0.1:8080", ""},
		{"terminating is not used beside ready",
			[]discoveryv1.Endpoint{ep("10.1.0.1"), ep("10.1.0.2", conditions(false, true, true))}, "10.1.0.1:8080", ""},
		{"terminating as a fallback",
			[]discoveryv1.Endpoint{ep("10.1.0.1", conditions(false, false, true)), ep("10.1.0.2", conditions(false, true, true))}, "10.1.0.2:8080", ""},
		{"not serving is never used", []discoveryv1.Endpoint{ep("10.1.0.1", conditions(false, false, true))}, "", ""},
		{"not ready, not terminating", []discoveryv1.Endpoint{ep("10.1.0.1", conditions(false, true, false))}, "", ""},
		{"nil terminating is not terminating",
			[]discoveryv1.Endpoint{ep("10.1.0.1", func(e *discoveryv1.Endpoint) { e.Conditions.Ready = &no })}, "", ""},
		{"nil serving is serving", []discoveryv1.Endpoint{ep("10.1.0.1", func(e *discoveryv1.Endpoint) {
			e.Conditions.Ready, e.Conditions.Terminating = &no, &yes
		})}, "10.1.0.1:8080", ""},
		{"no node is another node", []discoveryv1.Endpoint{ep("10.1.0.1"), ep("10.1.0.2", on(""))}, "10.1.0.1:8080 10.1.0.2:8080", ""},
		{"published although not ready", []discoveryv1.Endpoint{ep("10.1.0.1", conditions(true, false, false))}, "10.1.0.1:8080", ""},
		{"local is decided on its own",
			[]discoveryv1.Endpoint{ep("10.1.0.1"), ep("10.1.0.2", on("n1"), conditions(false, true, true)), ep("10.1.0.3", on("n2"))},
			"10.1.0.1:8080 10.1.0.3:8080", "10.1.0.2:8080*"},
		{"sorted without repeats", []discoveryv1.Endpoint{ep("10.1.0.9"), ep("10.1.0.10"), ep("10.1.0.9")}, "10.1.0.9:8080 10.1.0.10:8080", ""},
		{"the better of repeats", []discoveryv1.Endpoint{ep("10.1.0.1", conditions(false, true, true)), ep("10.1.0.1")}, "10.1.0.1:8080", ""},
		{"of repeats one that does not terminate, though it is not ready",
			[]discoveryv1.Endpoint{ep("10.1.0.1", conditions(false, true, true)), ep("10.1.0.1", conditions(false, false, false))}, "", ""},
		{"of repeats one that does not terminate, though the other is published",
			[]discoveryv1.Endpoint{ep("10.1.0.1", conditions(true, true, true)), ep("10.1.0.1", conditions(false, false, false)), ep("10.1.0.2")}, "10.1.0.2:8080", ""},
		{"odd addresses", []discoveryv1.Endpoint{ep("010.001.0.041"), ep(" 10.1.0.42 ")}, "10.1.0.41:8080 10.1.0.42:8080", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := New(Config{NodeName: "n1"})
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

// TestSlicesAreMerged: a Service's slices come, move and go in any order.
//
// Behaviour: 67, 70.
func TestSlicesAreMerged(t *testing.T) {
	m := New(Config{})
	// Slices may come before their Service.
	m.SetSlice(eps("a", "web", ep("10.1.0.1"), ep("10.1.0.2")))
	m.SetSlice(eps("b", "web", ep("10.1.0.3")))
	if c := m.Refresh(); len(c.Services) != 0 {
		t.Fatalf("slices without a Service changed %v", c)
	}
	m.SetService(svc("web", "10.96.0.1", 80))
	if got := cluster(t, m, "web"); got != "10.1.0.1:8080 10.1.0.2:8080 10.1.0.3:8080" {
		t.Fatalf("endpoints %q", got)
	}
	// An endpoint moves: first it is in both slices, then only in the other.
	m.SetSlice(eps("b", "web", ep("10.1.0.2"), ep("10.1.0.3")))
	m.SetSlice(eps("a", "web", ep("10.1.0.1")))
	if c := m.Refresh(); len(c.Services) != 0 {
		t.Errorf("a move between slices changed %+v", c.Services[0])
	}
	m.DeleteSlice(types.NamespacedName{Namespace: "default", Name: "b"})
	if got := cluster(t, m, "web"); got != "10.1.0.1:8080" {
		t.Errorf("endpoints %q", got)
	}
	// A slice that changes hands leaves its old Service.
	m.SetService(svc("other", "10.96.0.2", 80))
	m.SetSlice(eps("a", "other", ep("10.1.0.1")))
	if got := cluster(t, m, "web"); got != "" {
		t.Errorf("endpoints of web %q", got)
	}
	if got := cluster(t, m, "other"); got != "10.1.0.1:8080" {
		t.Errorf("endpoints of other %q", got)
	}
}

// TestNamedPortsPerSlice: the slice's number counts, by the port's name.
//
// Behaviour: 5.
func TestNamedPortsPerSlice(t *testing.T) {
	m := New(Config{})
	m.SetService(svc("web", "10.96.0.1", 80))
	a, b := eps("a", "web", ep("10.1.0.1")), eps("b", "web", ep("10.1.0.2"))
	nine := int32(9090)
	b.Ports[0].Port = &nine
	m.SetSlice(a)
	m.SetSlice(b)
	if got := cluster(t, m, "web"); got != "10.1.0.1:8080 10.1.0.2:9090" {
		t.Errorf("endpoints %q", got)
	}
}

// TestExcluded: Services and slices that are none of a proxy's business.
//
// Behaviour: 69, 99, 101, 102, 103.
func TestExcluded(t *testing.T) {
	for name, change := range map[string]func(*corev1.Service){
		"headless":      func(s *corev1.Service) { s.Spec.ClusterIP, s.Spec.ClusterIPs = "None", []string{"None"} },
		"no address":    func(s *corev1.Service) { s.Spec.ClusterIP, s.Spec.ClusterIPs = "", nil },
		"external name": func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeExternalName },
		"foreign proxy": func(s *corev1.Service) { s.Labels = map[string]string{proxyNameLabel: ""} },
	} {
		t.Run(name, func(t *testing.T) {
			m := New(Config{})
			m.SetService(svc("web", "10.96.0.1", 80))
			m.Refresh()
			s := svc("web", "10.96.0.1", 80)
			change(s)
			m.SetService(s)
			if c := m.Refresh(); len(c.Services) != 1 || c.Services[0].New != nil {
				t.Errorf("changes %+v, want the Service gone", c.Services)
			}
		})
	}
	m := New(Config{})
	m.SetService(svc("web", "10.96.0.1", 80))
	headless := eps("a", "web", ep("10.1.0.1"))
	headless.Labels[corev1.IsHeadlessService] = ""
	m.SetSlice(headless)
	orphan := eps("b", "web", ep("10.1.0.2"))
	orphan.Labels = nil
	m.SetSlice(orphan)
	names := eps("c", "web", ep("example.com"))
	names.AddressType = discoveryv1.AddressTypeFQDN
	m.SetSlice(names)
	if got := cluster(t, m, "web"); got != "" {
		t.Errorf("endpoints %q", got)
	}
}

// TestBadFieldsAreSkipped: what makes no sense is named and left out, and the
// rest works.
//
// Behaviour: 14, 36, 68.
func TestBadFieldsAreSkipped(t *testing.T) {
	m, log := newLogged()
	s := svc("web", "010.096.0.001", 80, 81, 99999, 80)
	s.Spec.ClusterIPs = append(s.Spec.ClusterIPs, "fd00::300", "nonsense", "10.96.0.9")
	s.Spec.Ports[1].Protocol = "ICMP"
	s.Spec.Ports[0].NodePort = -1
	s.Spec.ExternalIPs = []string{"nonsense"}
	m.SetService(s)
	e := eps("a", "web", ep("10.1.0.1"), ep("fd00::1"), ep("127.0.0.1"), discoveryv1.Endpoint{}, ep("10.1.0.300"))
	pname := "nil-port"
	zero := int32(0)
	e.Ports = append(e.Ports, discoveryv1.EndpointPort{Name: &pname}, discoveryv1.EndpointPort{Port: e.Ports[0].Port},
		discoveryv1.EndpointPort{Name: &pname, Port: &zero})
	m.SetSlice(e)
	if got := cluster(t, m, "web"); got != "10.1.0.1:8080" {
		t.Errorf("endpoints %q", got)
	}
	got := m.Service(key("web"))
	if len(got.Ports) != 1 || got.Ports[0].Number != 80 || got.Ports[0].NodePort != 0 ||
		got.ClusterIPs != [2]netip.Addr{netip.MustParseAddr("10.96.0.1"), netip.MustParseAddr("fd00::300")} {
		t.Errorf("service %+v", got)
	}
	for _, field := range []string{"spec.clusterIPs[2]", "spec.clusterIPs[3]", "spec.ports[0].nodePort", "spec.ports[1].protocol",
		"spec.ports[2].port", "spec.ports[3].port", "endpoints[1].addresses[0]", "endpoints[2].addresses[0]", "endpoints[3].addresses[0]",
		"endpoints[4].addresses[0]", "ports[1].port", "ports[2].name", "ports[3].port", "spec.externalIPs[0]"} {
		if !strings.Contains(log.String(), "field="+field+" ") && !strings.Contains(log.String(), `field="`+field) {
			t.Errorf("no log line names %s", field)
		}
	}
	if m.Stats().Skipped != 14 {
		t.Errorf("skipped %d, log:\n%s", m.Stats().Skipped, log)
	}
	// The same faults again are not reported, another one is.
	m.SetService(s)
	m.SetSlice(e)
	if m.Stats().Skipped != 14 {
		t.Errorf("a resync reports %d faults again", m.Stats().Skipped-14)
	}
	s.Spec.ExternalIPs[0] = "other nonsense"
	if m.SetService(s); m.Stats().Skipped != 15 {
		t.Errorf("skipped %d after a new fault, want 15", m.Stats().Skipped)
	}
}

// TestOnlyRealChangesCount: events that say nothing new leave nothing to look at.
func TestOnlyRealChangesCount(t *testing.T) {
	m := New(Config{NodeName: "n1"})
	m.SetService(svc("web", "10.96.0.1", 80))
	m.SetSlice(eps("a", "web", ep("10.1.0.1")))
	m.Refresh()
	was := m.Stats()
	for range 3 {
		m.SetService(svc("web", "10.96.0.1", 80))
		m.SetSlice(eps("a", "web", ep("10.1.0.1")))
		if m.Dirty() {
			t.Fatal("repeated events are something to look at")
		}
		if c := m.Refresh(); !c.Empty() {
			t.Fatalf("repeated events changed %+v", c)
		}
	}
	now := m.Stats()
	if now.Revision != was.Revision || now.ServiceEvents != was.ServiceEvents+3 || now.SliceEvents != was.SliceEvents+3 || now.ServiceChanges != was.ServiceChanges {
		t.Errorf("from %+v to %+v", was, now)
	}
}

func TestNode(t *testing.T) {
	m := New(Config{NodeName: "n1"})
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	n.Status.Addresses = []corev1.NodeAddress{
		{Type: corev1.NodeHostName, Address: "n1"},
		{Type: corev1.NodeExternalIP, Address: "203.0.113.1"}, {Type: corev1.NodeExternalIP, Address: "2001:db8::1"},
		{Type: corev1.NodeInternalIP, Address: "192.0.2.1"}, {Type: corev1.NodeInternalIP, Address: "bad"},
	}
	other := n.DeepCopy()
	other.Name = "n2"
	m.SetNode(other)
	if c := m.Refresh(); c.Node != nil {
		t.Error("another node counts")
	}
	m.SetNode(n)
	if c := m.Refresh(); c.Node == nil {
		t.Error("the node does not count")
	}
	got := m.Node().Addresses
	if fmt.Sprint(got) != "[192.0.2.1 2001:db8::1]" {
		t.Errorf("addresses %v", got)
	}
	m.DeleteNode("n1")
	m.SetNode(n)
	if c := m.Refresh(); c.Node != nil || !m.Node().Known {
		t.Error("the node's addresses did not stay")
	}
}
