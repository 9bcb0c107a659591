package model

import (
	"fmt"
	"net/netip"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/weft-proxy/weft/frontends/testing/publishtest"
)

// bigObjects are n Services with everything, and slices of them.
func bigObjects(n, endpoints int) (services []*corev1.Service, slices []*discoveryv1.EndpointSlice) {
	for i := range n {
		s := at(svc(fmt.Sprint("service-", i), fmt.Sprintf("10.96.%d.%d", i/250, i%250+1), 80, 81), i%60)
		s.Spec.ExternalIPs = []string{"203.0.113.1", fmt.Sprintf("203.0.%d.%d", i/250, i%250+1)}
		s.Spec.LoadBalancerSourceRanges = []string{"192.0.2.0/24"}
		s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
		e := eps(s.Name+"-x", s.Name)
		for j := range endpoints {
			e.Endpoints = append(e.Endpoints, ep(fmt.Sprintf("10.%d.%d.%d", 1+i/250, i%250, j+1), on("n1"), zones("a", "b")))
		}
		services, slices = append(services, s), append(slices, triggered(e, "2099-01-01T00:00:00Z"))
	}
	return services, slices
}

// TestResyncIsLittleWork: a slice that says nothing new is read and no more.
func TestResyncIsLittleWork(t *testing.T) {
	services, slices := bigObjects(1, 100)
	m := New(Config{NodeName: "n1"})
	m.SetService(services[0])
	m.SetSlice(slices[0])
	m.Refresh()
	before := m.Stats().Work
	m.SetSlice(slices[0])
	m.Refresh()
	if got, want := m.Stats().Work-before, uint64(1+len(slices[0].Endpoints)); got != want {
		t.Errorf("work %d, want %d", got, want)
	}
}

// TestNothingIsLeft: after everything is gone, the model holds nothing of it.
func TestNothingIsLeft(t *testing.T) {
	services, slices := bigObjects(500, 5)
	m := New(Config{NodeName: "n1", Started: time.Unix(0, 0)})
	m.SetServiceCIDR(serviceCIDRObject("a", "10.96.0.0/16"))
	for i := range services {
		m.SetSlice(slices[i])
		m.SetService(services[i])
	}
	huge := eps("huge", "service-0")
	for i := range 10_000 {
		huge.Endpoints = append(huge.Endpoints, ep(fmt.Sprintf("10.9.%d.%d", i/250, i%250+1)))
	}
	m.SetSlice(huge)
	m.Refresh()
	if m.Stats().Conflicts == 0 || m.records[key("service-0")].merged == nil {
		t.Fatalf("the test is too small: %+v", m.Stats())
	}
	// Slices that move and Services that go before their slices.
	for i := range slices {
		moved := slices[i].DeepCopy()
		moved.Labels[discoveryv1.LabelServiceName] = "elsewhere"
		if i%2 == 0 {
			m.SetSlice(moved)
		}
		m.DeleteService(key(services[i].Name))
		if i%3 == 0 {
			m.Refresh()
		}
	}
	for i := range slices {
		m.DeleteSlice(key(slices[i].Name))
	}
	m.DeleteSlice(key("huge"))
	m.DeleteServiceCIDR("a")
	m.Refresh()
	v := reflect.ValueOf(m).Elem()
	maps := 0
	var look func(v reflect.Value, path string)
	look = func(v reflect.Value, path string) {
		switch v.Kind() {
		case reflect.Map:
			maps++
			publishtest.Equal(t, fmt.Sprintf("entries left in %s", path), v.Len(), 0)
		case reflect.Slice:
			if v.Cap() > maxIdleRoom {
				t.Errorf("%s has room for %d", path, v.Cap())
			}
		case reflect.Struct:
			for i := range v.NumField() {
				look(v.Field(i), path+"."+v.Type().Field(i).Name)
			}
		}
	}
	for i := range v.NumField() {
		look(v.Field(i), v.Type().Field(i).Name)
	}
	if maps < 7 {
		t.Errorf("only %d maps were looked at", maps)
	}
	if s := m.Stats(); s.Conflicts != 0 || s.Services != 0 || s.Slices != 0 {
		t.Errorf("stats %+v", s)
	}
}

// TestNothingOfObjectsIsKept: no string of an API object stays reachable from
// the model, or with it the whole buffer that it was decoded from would.
func TestNothingOfObjectsIsKept(t *testing.T) {
	// Every string of the objects is cut out of this one.
	const source = "default web web-1 p80 10.96.0.1 203.0.113.1 192.0.2.0/24 zone-a node-1 cidr"
	whole := strings.Clone(source)
	cut := func(s string) string {
		at := strings.Index(whole, s)
		return whole[at : at+len(s)]
	}
	s := svc("x", cut("10.96.0.1"), 80)
	s.Namespace, s.Name, s.Spec.Ports[0].Name = cut("default"), cut("web"), cut("p80")
	s.Spec.ExternalIPs, s.Spec.LoadBalancerSourceRanges = []string{cut("203.0.113.1")}, []string{cut("192.0.2.0/24")}
	name, nodeName := cut("p80"), cut("node-1")
	e := eps("x", cut("web"), ep("10.1.0.1", zones(cut("zone-a")), nodes(nodeName), on(nodeName), of(cut("web-1"), cut("web"))))
	e.Endpoints[0].TargetRef.Namespace = cut("default")
	e.Namespace, e.Name, e.Ports[0].Name = cut("default"), cut("web-1"), &name
	n := node(nodeName, "192.0.2.1")
	n.Labels[corev1.LabelTopologyZone] = cut("zone-a")
	cidr := serviceCIDRObject(cut("cidr"), "10.96.0.0/16")
	begin := uintptr(unsafe.Pointer(unsafe.StringData(whole)))
	for _, sliceFirst := range []bool{false, true} {
		m := New(Config{NodeName: "node-1"})
		if sliceFirst {
			m.SetSlice(e)
		}
		for range 2 {
			m.SetService(s)
			m.SetSlice(e)
			m.SetNode(n)
			m.SetServiceCIDR(cidr)
			m.Refresh()
			// The second time everything is replaced.
			e.Endpoints = append(e.Endpoints, ep("10.1.0.2"))
			s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
		}
		found := 0
		eachString(reflect.ValueOf(m), make(map[uintptr]bool), func(path string, text string) {
			found++
			if p := uintptr(unsafe.Pointer(unsafe.StringData(text))); p >= begin && p < begin+uintptr(len(whole)) {
				t.Errorf("%s keeps %q of an object", path, text)
			}
		}, "model")
		if found < 20 {
			t.Errorf("only %d strings were looked at", found)
		}
	}
	runtime.KeepAlive(whole)
}

// eachString calls f for every string that can be reached.
func eachString(v reflect.Value, seen map[uintptr]bool, f func(path, text string), path string) {
	switch v.Kind() {
	case reflect.String:
		if v.Len() > 0 {
			f(path, v.String())
		}
	case reflect.Pointer:
		if !v.IsNil() && !seen[v.Pointer()] && v.Type().Elem().Kind() != reflect.Interface {
			seen[v.Pointer()] = true
			eachString(v.Elem(), seen, f, path)
		}
	case reflect.Struct:
		// The logger and the clock's zones are none of the model's.
		if t := v.Type(); t.PkgPath() != reflect.TypeFor[Model]().PkgPath() && t != reflect.TypeFor[Key]() && t != reflect.TypeFor[interned]() {
			return
		}
		for i := range v.NumField() {
			eachString(v.Field(i), seen, f, path+"."+v.Type().Field(i).Name)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			eachString(v.Index(i), seen, f, path+"[]")
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			eachString(it.Key(), seen, f, path+"{key}")
			eachString(it.Value(), seen, f, path+"{}")
		}
	}
}

// TestSmallKeepsNothing: merged lists are kept only for a large Service and its present ports.
func TestSmallKeepsNothing(t *testing.T) {
	m := New(Config{NodeName: "n1"})
	m.SetService(svc("web", "10.96.0.1", 80, 81))
	set := func(n int) {
		e := eps("a", "web")
		for i := range n {
			e.Endpoints = append(e.Endpoints, ep(fmt.Sprintf("10.1.%d.%d", i/250, i%250+1)))
		}
		m.SetSlice(e)
		m.Refresh()
	}
	for _, tt := range []struct{ endpoints, lists int }{{100, 0}, {600, 2}, {300, 2}, {127, 0}, {600, 2}} {
		set(tt.endpoints)
		publishtest.Equal(t, fmt.Sprintf("lists of %d endpoints", tt.endpoints), len(m.records[key("web")].merged), tt.lists)
	}
	m.SetService(svc("web", "10.96.0.1", 80))
	m.Refresh()
	publishtest.Equal(t, "lists for one port", len(m.records[key("web")].merged), 1)
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
	m := New(Config{NodeName: "n1"})
	m.SetService(svc("web", "10.96.0.1", 80))
	m.SetSlice(eps("a", "web", endpoints(10_000)...))
	m.Refresh()
	publishtest.Equal(t, "endpoints", m.Service(key("web")).Ports[0].Backends[IPv4].Cluster.Len(), 10_000)
	publishtest.Equal(t, "lists of zones, each once", len(m.slices[key("a")].zones), 7000)
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
	onNode := func(node string) discoveryv1.Endpoint { return ep("10.1.0."+node[1:], on(node)) }
	for of, want := range map[string]string{"old": "n1 n2 n3", "young": "n1 n2 n3", "none": ""} {
		var reporters []string
		for _, node := range []string{"n1", "n2", "n3", "n4", "n5"} {
			notices := 0
			m := New(Config{NodeName: node, Notify: func(n Notice) {
				if notices++; n.Reporter {
					reporters = append(reporters, node)
				}
			}})
			m.SetService(old)
			m.SetService(young)
			// In two slices, so that the order is not that of the slices.
			m.SetSlice(eps("a", of, onNode("n5"), onNode("n1"), onNode("n3")))
			m.SetSlice(eps("b", of, onNode("n4"), onNode("n2")))
			if m.Refresh(); notices != 1 {
				t.Errorf("%d notices on %s", notices, node)
			}
		}
		publishtest.Equal(t, fmt.Sprintf("reporters of endpoints of %s", of), strings.Join(reporters, " "), want)
	}
}

// TestTriggersAreBounded: triggers do not pile up without a Refresh.
func TestTriggersAreBounded(t *testing.T) {
	m := New(Config{Started: time.Unix(0, 0)})
	m.SetService(svc("web", "10.96.0.1", 80))
	for i := range 2 * maxTriggers {
		when := time.Unix(int64(i+1), 0).UTC().Format(time.RFC3339Nano)
		m.SetSlice(triggered(eps("a", "web", ep(fmt.Sprintf("10.1.0.%d", i%2+1))), when))
	}
	if got := m.Refresh().Triggers; len(got) != maxTriggers || got[0].At.Unix() != 1 {
		t.Errorf("%d triggers from %v, want the first %d", len(got), got[0], maxTriggers)
	}
}

// TestStartedIsNow: without Config.Started, earlier triggers are ignored.
func TestStartedIsNow(t *testing.T) {
	before := time.Now().Add(-time.Millisecond).Format(time.RFC3339Nano)
	after := time.Now().Add(time.Hour).Format(time.RFC3339Nano)
	m := New(Config{})
	m.SetService(svc("web", "10.96.0.1", 80))
	m.SetSlice(triggered(eps("a", "web", ep("10.1.0.1")), before))
	m.SetSlice(triggered(eps("b", "web", ep("10.1.0.2")), after))
	if got := m.Refresh().Triggers; len(got) != 1 {
		t.Errorf("triggers %v, want the later one", got)
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
		publishtest.Equal(t, fmt.Sprintf("%+v under Local %t", tt.candidate, tt.local), tt.candidate.Why(tt.local), tt.want)
	}
}
