package main

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/weft-proxy/weft/aggregator/access"
	"github.com/weft-proxy/weft/aggregator/admission"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/services/render"
)

// manyServices returns Services with endpoints each, 100 in a slice.
func manyServices(services, endpoints int, change func(*corev1.Service)) *model.Model {
	m := model.New(model.Config{NodeName: "n1"})
	for i := range services {
		s := &corev1.Service{}
		s.Namespace, s.Name = "default", fmt.Sprintf("service-%d", i)
		s.Spec.ClusterIP = fmt.Sprintf("10.%d.%d.%d", 96+i/62500, i/250%250, i%250+1)
		s.Spec.Ports = []corev1.ServicePort{{Name: "http", Port: 80}}
		change(s)
		m.SetService(s)
		name, port := "http", int32(8080)
		for from := 0; from < endpoints; from += 100 {
			e := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: &name, Port: &port}}}
			e.Namespace, e.Name = s.Namespace, fmt.Sprintf("%s-%d", s.Name, from)
			e.Labels = map[string]string{discoveryv1.LabelServiceName: s.Name}
			for j := from; j < min(from+100, endpoints); j++ {
				n := i*endpoints + j
				e.Endpoints = append(e.Endpoints, discoveryv1.Endpoint{Addresses: []string{
					netip.AddrFrom4([4]byte{10, byte(128 + n/62500), byte(n / 250 % 250), byte(n%250 + 1)}).String(),
				}})
			}
			m.SetSlice(e)
		}
	}
	return m
}

// TestServicesWithinTheDefaults has rulesets of large clusters admitted within the limits
// that a publisher has if the configuration sets none. It prints how much of them they use.
func TestServicesWithinTheDefaults(t *testing.T) {
	file := filepath.Join(t.TempDir(), "weft.yaml")
	if err := os.WriteFile(file, []byte(`apiVersion: weft.dev/v1alpha1
kind: Configuration
publishers:
- {name: services, match: {uid: 1}, allow: {tables: [{name: "weft*"}], nat: true, masqueradeMark: true, mangle: true, conntrack: true}}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	control, err := access.Open(access.Options{File: file})
	must(t, err)
	for _, tt := range []struct {
		name                string
		services, endpoints int
		change              func(*corev1.Service)
	}{
		{"10,000 Services with 10 endpoints", 10_000, 10, func(*corev1.Service) {}},
		{"one Service with 100,000 endpoints", 1, 100_000, func(*corev1.Service) {}},
		{"10,000 Services with NodePorts and 10 endpoints", 10_000, 10, func(s *corev1.Service) {
			s.Spec.Type = corev1.ServiceTypeNodePort
			var n int
			_, _ = fmt.Sscanf(s.Name, "service-%d", &n)
			s.Spec.Ports[0].NodePort = int32(20_000 + n) //nolint:gosec // below 65,536
		}},
		// Each port with session affinity declares room for 65,536 clients.
		{"20 Services with session affinity and 10 endpoints", 20, 10, func(s *corev1.Service) {
			s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
		}},
	} {
		r, err := render.New(render.Config{
			Families: [2]bool{true, false}, Detect: render.Detect{CIDRs: []netip.Prefix{netip.MustParsePrefix("10.128.0.0/9")}}, MasqueradeBit: render.DefaultMasqueradeBit,
		})
		must(t, err)
		r.Load(manyServices(tt.services, tt.endpoints, tt.change).Refresh())
		state, fragment := merge.New(), r.Snapshot()
		key := desired.Key{Publisher: "services", Name: fragment.GetName()}
		b := admission.NewSnapshot(admission.Config{Access: control}, key, state.Scope())
		b.AddFragment(fragment)
		update, err := b.Finish()
		if err == nil {
			err = state.ApplyWithin(update, admission.OverLimit(control.Publisher("services"), key), nil)
		}
		if err != nil {
			t.Errorf("%s: refused: %.2000v", tt.name, err)
			continue
		}
		usage := state.Usage("services")
		worst, every := state.Paths.PacketTime("services")
		t.Logf("%s: %d chains, %d rules, %d sets, %d elements, memory %d MiB of %d, %d of %d ns for a packet, %d of %d for every packet", tt.name,
			usage.Chains, usage.Rules, usage.Sets, usage.Elements, usage.Memory>>20, access.DefaultMemory>>20, worst, access.DefaultPacket, every, access.DefaultEveryPacket)
		if usage.Memory > access.DefaultMemory/2 || worst > access.DefaultPacket/20 || every > access.DefaultEveryPacket/5 {
			t.Errorf("%s: %d bytes of memory are more than half of the default limit, or %d ns for a packet more than 5%%, or %d for every packet more than 20%%", tt.name, usage.Memory, worst, every)
		}
	}
}
