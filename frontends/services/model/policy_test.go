package model

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestPolicies: the two traffic policies are apart, and the endpoints of this
// node are listed where either of them is Local.
//
// Behaviour: 55, 59, 60, 64.
func TestPolicies(t *testing.T) {
	const everywhere, here = "10.1.0.1:8080* 10.1.0.2:8080 10.1.0.3:8080", "10.1.0.1:8080*"
	for _, tt := range []struct {
		name               string
		internal, external string
		kind               corev1.ServiceType
		wantInternal       bool
		wantExternal       bool
		local              string
	}{
		{"neither", "", "", corev1.ServiceTypeNodePort, false, false, ""},
		{"both Cluster", "Cluster", "Cluster", corev1.ServiceTypeNodePort, false, false, ""},
		{"internal", "Local", "Cluster", corev1.ServiceTypeNodePort, true, false, here},
		{"external", "Cluster", "Local", corev1.ServiceTypeNodePort, false, true, here},
		{"both", "Local", "Local", corev1.ServiceTypeNodePort, true, true, here},
		{"external, but nothing from outside", "Cluster", "Local", corev1.ServiceTypeClusterIP, false, false, ""},
		{"both, but nothing from outside", "Local", "Local", corev1.ServiceTypeClusterIP, true, false, here},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := svc("web", "10.96.0.1", 80)
			s.Spec.Type, s.Spec.ExternalTrafficPolicy = tt.kind, corev1.ServiceExternalTrafficPolicy(tt.external)
			if tt.internal != "" {
				p := corev1.ServiceInternalTrafficPolicy(tt.internal)
				s.Spec.InternalTrafficPolicy = &p
			}
			m := New(Config{NodeName: "n1"})
			m.SetService(s)
			m.SetSlice(eps("a", "web", ep("10.1.0.1", on("n1")), ep("10.1.0.2", on("n2")), ep("10.1.0.3")))
			m.Refresh()
			got := m.Service(key("web"))
			if got.InternalLocal != tt.wantInternal || got.ExternalLocal != tt.wantExternal {
				t.Errorf("internal %v, external %v", got.InternalLocal, got.ExternalLocal)
			}
			b := got.Ports[0].Backends[IPv4]
			if text(b.Cluster) != everywhere || text(b.Local) != tt.local {
				t.Errorf("cluster %q, local %q, want %q", text(b.Cluster), text(b.Local), tt.local)
			}
		})
	}
}

// TestTrafficDistribution: the Service's preference reaches a proxy as hints; by
// itself it changes nothing.
//
// Behaviour: 76.
func TestTrafficDistribution(t *testing.T) {
	for _, preference := range []string{corev1.ServiceTrafficDistributionPreferClose, corev1.ServiceTrafficDistributionPreferSameZone, corev1.ServiceTrafficDistributionPreferSameNode} {
		m := New(Config{NodeName: "n1"})
		n := node("n1")
		n.Labels[corev1.LabelTopologyZone] = "a"
		m.SetNode(n)
		s := svc("web", "10.96.0.1", 80)
		s.Spec.TrafficDistribution = &preference
		m.SetService(s)
		m.SetSlice(eps("a", "web", ep("10.1.0.1", on("n1")), ep("10.1.0.2", on("n2"))))
		if got := cluster(t, m, "web"); got != "10.1.0.1:8080* 10.1.0.2:8080" {
			t.Errorf("%s without hints: %q", preference, got)
		}
		m.SetSlice(eps("a", "web", ep("10.1.0.1", on("n1"), zones("a"), nodes("n1")), ep("10.1.0.2", on("n2"), zones("a"), nodes("n2"))))
		if got := cluster(t, m, "web"); got != "10.1.0.1:8080*" {
			t.Errorf("%s with hints: %q", preference, got)
		}
	}
}
