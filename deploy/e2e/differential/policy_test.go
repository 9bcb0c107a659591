package differential

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// policies: traffic that stays on the node.
//
// Behaviour: 49, 50, 51, 52, 54, 55, 56, 57, 58, 59.
func policies() []check {
	nodePort, balancer := corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer
	return []check{
		{
			name: "external-local", services: []service{{name: "web", kind: balancer, endpoints: "web-1 web-3", external: 1, ingress: 1, sctp: true, change: policy(false, true)}},
			probes: lines(`
				outside tcp node:80 = web-1 as self
				outside udp node:80 = web-1 as self
				outside sctp node:80 = web-1 as self
				outside tcp external:80 = web-1 as self
				outside tcp lb:80 = web-1 as self
				outside udp lb:80 = web-1 as self
				outside sctp lb:80 = web-1 as self
				pod tcp node:80 = web-1 web-3 as self
				pod tcp external:80 = web-1 web-3 as self
				pod tcp lb:80 = web-1 web-3 as self
				web-1 tcp node:80 = web-1 web-3 as node+self
				host tcp node:80 = web-1 web-3 as node
				host tcp external:80 = web-1 web-3 as node
				host udp lb:80 = web-1 web-3 as node
				pod tcp cluster:80 = web-1 web-3 as self
				outside tcp cluster:80 = web-1 web-3 as node
			`),
		},
		{
			name: "external-none-local", services: []service{{name: "web", kind: balancer, endpoints: "web-3 web-4", external: 1, ingress: 1, change: policy(false, true)}},
			probes: lines(`
				outside tcp node:80 = dropped
				outside udp node:80 = dropped
				outside tcp external:80 = dropped
				outside tcp lb:80 = dropped
				pod tcp node:80 = web-3 web-4 as self
				pod tcp external:80 = web-3 web-4 as self
				pod tcp lb:80 = web-3 web-4 as self
				host tcp node:80 = web-3 web-4 as node
				host tcp lb:80 = web-3 web-4 as node
				pod tcp cluster:80 = web-3 web-4 as self
			`),
		},
		{
			name: "external-none-at-all", services: []service{{name: "web", kind: balancer, external: 1, ingress: 1, change: policy(false, true)}},
			probes: lines(`
				outside tcp node:80 = refused
				outside tcp external:80 = refused
				outside tcp lb:80 = refused
				pod tcp lb:80 = refused
				host tcp node:80 = refused
			`),
		},
		{
			name: "external-local-ranges", services: []service{{name: "web", kind: balancer, endpoints: "web-1 web-3", ingress: 1, change: func(s *corev1.Service) {
				policy(false, true)(s)
				ranges("192.168.200.100/32", "fd00:200::64/128")(s)
			}}},
			probes: lines(`
				outside tcp lb:80 = web-1 as self
				pod tcp lb:80 = dropped
				host tcp lb:80 = dropped
			`),
		},
		{
			name: "internal-local", services: []service{{name: "web", kind: nodePort, endpoints: "web-1 web-3", external: 1, change: policy(true, false)}},
			probes: lines(`
				pod tcp cluster:80 = web-1 as self
				pod udp cluster:80 = web-1 as self
				host tcp cluster:80 = web-1 as node
				outside tcp cluster:80 = web-1 as node
				web-1 tcp cluster:80 = web-1 as node
				outside tcp node:80 = web-1 web-3 as node
				outside tcp external:80 = web-1 web-3 as node
			`),
		},
		{
			name: "internal-none-local", services: []service{{name: "web", kind: nodePort, endpoints: "web-3", change: policy(true, false)}},
			probes: lines(`
				pod tcp cluster:80 = dropped
				pod udp cluster:80 = dropped
				host tcp cluster:80 = dropped
				outside tcp cluster:80 = dropped
				outside tcp node:80 = web-3 as node
			`),
		},
		{
			name: "internal-none-at-all", services: []service{{name: "web", change: policy(true, false)}},
			probes: lines(`
				pod tcp cluster:80 = refused
				outside udp cluster:80 = refused
			`),
		},
		{
			name: "both-local", services: []service{{name: "web", kind: nodePort, endpoints: "web-2 web-4", change: policy(true, true)}},
			probes: lines(`
				pod tcp cluster:80 = web-2 as self
				outside tcp node:80 = web-2 as self
				pod tcp node:80 = web-2 web-4 as self
			`),
		},
		{
			name: "flips", services: []service{{name: "web", kind: nodePort, endpoints: "web-1 web-3"}},
			probes: lines(`outside tcp node:80 = web-1 web-3 as node`),
			then: []step{
				{put("web", func(s *service) { s.change = policy(false, true) }), lines(`
					outside tcp node:80 = web-1 as self
					pod tcp cluster:80 = web-1 web-3 as self
				`)},
				{put("web", func(s *service) { s.change, s.endpoints = policy(false, true), "web-3" }), lines(`
					outside tcp node:80 = dropped
					pod tcp node:80 = web-3 as self
				`)},
				{put("web", func(s *service) { s.change, s.endpoints = policy(true, true), "web-1 web-3" }), lines(`
					outside tcp node:80 = web-1 as self
					pod tcp cluster:80 = web-1 as self
				`)},
				{put("web", func(s *service) { s.endpoints = "web-1 web-3" }), lines(`
					outside tcp node:80 = web-1 web-3 as node
					pod tcp cluster:80 = web-1 web-3 as self
				`)},
			},
		},
	}
}

// affinities: clients that keep their endpoint.
//
// Behaviour: 77, 78, 81, 83, 84.
func affinities() []check {
	sticky := func(s *corev1.Service) { s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP }
	local := func(s *corev1.Service) { sticky(s); policy(false, true)(s) }
	return []check{
		{
			name: "general", services: []service{{name: "web", kind: corev1.ServiceTypeLoadBalancer, endpoints: all, external: 1, ingress: 1, sctp: true, change: sticky}},
			probes: lines(`
				pod tcp cluster:80 sticky = ` + all + ` as self
				web-4 tcp node:80 sticky = ` + all + ` as node
				pod udp cluster:80 sticky = ` + all + ` as self
				host tcp cluster:80 node:80 lb:80 sticky = ` + all + ` as node
				outside tcp cluster:80 node:80 external:80 lb:80 sticky = ` + all + ` as node
				outside udp cluster:80 node:80 external:80 lb:80 sticky = ` + all + ` as node
				outside sctp cluster:80 node:80 external:80 lb:80 sticky = ` + all + ` as node
			`),
		},
		{
			name: "local", services: []service{{name: "web", kind: corev1.ServiceTypeNodePort, endpoints: "web-1 web-2 web-3", change: local}},
			probes: lines(`
				outside tcp node:80 sticky = web-1 web-2 as self
				pod tcp cluster:80 node:80 sticky = web-1 web-2 web-3 as self
			`),
		},
		{
			name: "off-and-on", services: []service{{name: "web", endpoints: "web-1 web-3", change: sticky}},
			probes: lines(`pod tcp cluster:80 sticky = web-1 web-3 as self`),
			then: []step{
				{put("web", func(s *service) { s.change = nil }), lines(`pod tcp cluster:80 = web-1 web-3 as self`)},
				{put("web", nil), lines(`pod tcp cluster:80 sticky = web-1 web-3 as self`)},
			},
		},
		{
			name: "endpoint-goes", services: []service{{name: "web", endpoints: "web-1", change: sticky}},
			probes: lines(`
				pod tcp cluster:80 = web-1 as self
				outside udp cluster:80 = web-1 as node
			`),
			then: []step{
				{put("web", func(s *service) { s.endpoints = "web-1 web-3" }), lines(`
					pod tcp cluster:80 = web-1 as self
					outside udp cluster:80 = web-1 as node
				`)},
				{put("web", func(s *service) { s.endpoints = "web-1~ web-3" }), lines(`
					pod tcp cluster:80 = web-3 as self
					outside udp cluster:80 = web-3 as node
				`)},
				{put("web", func(s *service) { s.endpoints = "web-4" }), lines(`
					pod tcp cluster:80 = web-4 as self
					outside udp cluster:80 = web-4 as node
				`)},
				{put("web", func(s *service) { s.endpoints = "web-3 web-4" }), lines(`
					pod tcp cluster:80 = web-4 as self
					outside udp cluster:80 = web-4 as node
				`)},
				{put("web", func(s *service) { s.endpoints = "" }), lines(`pod tcp cluster:80 = refused`)},
			},
		},
	}
}

// hints gives endpoints zones or nodes, in order: "zone-a", "node-1".
func hints(all ...string) func(*discoveryv1.EndpointSlice) {
	return func(s *discoveryv1.EndpointSlice) {
		for i := range s.Endpoints {
			if i >= len(all) || all[i] == "" {
				continue
			}
			h := &discoveryv1.EndpointHints{}
			if all[i][:4] == "zone" {
				h.ForZones = []discoveryv1.ForZone{{Name: all[i]}}
			} else {
				h.ForNodes = []discoveryv1.ForNode{{Name: all[i]}}
				h.ForZones = []discoveryv1.ForZone{{Name: "zone-a"}, {Name: "zone-b"}}
			}
			s.Endpoints[i].Hints = h
		}
	}
}

// topology: endpoints with hints for this zone or node.
//
// Behaviour: 71, 72, 73, 74, 75, 76.
func topology() []check {
	web := func(endpoints string, all ...string) []service {
		return []service{{name: "web", kind: corev1.ServiceTypeNodePort, endpoints: endpoints, slice: hints(all...)}}
	}
	local := web("web-1 web-3", "zone-b", "zone-a")
	local[0].change = policy(false, true)
	return []check{
		{name: "zone", services: web(all, "zone-a", "zone-b", "zone-a", "zone-b"), probes: lines(`
			pod tcp cluster:80 = web-1 web-3 as self
			outside tcp node:80 = web-1 web-3 as node
		`)},
		{name: "zone-of-others", services: web("web-3 web-4", "zone-b", "zone-b"), probes: lines(`pod tcp cluster:80 = web-3 web-4 as self`)},
		{name: "zone-missing-hint", services: web(all, "zone-a", "zone-b", "", "zone-b"), probes: lines(`pod tcp cluster:80 = ` + all + ` as self`)},
		{name: "zone-not-ready", services: web("web-1 web-2 web-3-", "zone-a", "zone-b", ""), probes: lines(`pod tcp cluster:80 = web-1 as self`)},
		{name: "zone-only-terminating", services: web("web-1~ web-3~", "zone-a", "zone-b"), probes: lines(`pod tcp cluster:80 = web-1 web-3 as self`)},
		{name: "node", services: web(all, "node-1", "node-1", "node-2", "node-2"), probes: lines(`
			pod tcp cluster:80 = web-1 web-2 as self
			outside tcp node:80 = web-1 web-2 as node
		`)},
		{name: "node-of-others", services: web("web-3 web-4", "node-2", "node-2"), probes: lines(`pod tcp cluster:80 = web-3 web-4 as self`)},
		{name: "local-does-not-care", services: local, probes: lines(`
			outside tcp node:80 = web-1 as self
			pod tcp cluster:80 = web-3 as self
		`)},
		{
			name: "node-moves", services: web("web-1 web-3", "zone-a", "zone-b"), probes: lines(`pod tcp cluster:80 = web-1 as self`),
			then: []step{
				{relabel("zone-b"), lines(`pod tcp cluster:80 = web-3 as self`)},
				{relabel(""), lines(`pod tcp cluster:80 = web-1 web-3 as self`)},
				{relabel(zone), lines(`pod tcp cluster:80 = web-1 as self`)},
			},
		},
	}
}

// relabel moves the node into another zone, or removes its zone.
func relabel(zone string) func(context.Context, *run) error {
	return func(ctx context.Context, r *run) error {
		label := fmt.Sprintf("%q", zone)
		if zone == "" {
			label = "null"
		}
		patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, corev1.LabelTopologyZone, label)
		if _, err := r.world.client().CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("label node: %w", err)
		}
		return nil
	}
}
