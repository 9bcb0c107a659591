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
		if got := strings.Join(reporters, " "); got != want {
			t.Errorf("endpoints of %s: reported by %q, want %q", of, got, want)
		}
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
		if got := tt.candidate.Why(tt.local); got != tt.want {
			t.Errorf("%+v under Local %t: %q, want %q", tt.candidate, tt.local, got, tt.want)
		}
	}
}
