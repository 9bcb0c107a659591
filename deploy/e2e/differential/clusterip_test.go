package differential

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

const all = "web-1 web-2 web-3 web-4"

// clusterIPs: clients of a ClusterIP, their source addresses, and refusals.
//
// Behaviour: 1, 2, 3, 4, 6, 7, 8, 9, 10, 15, 18, 95, 101, 102.
func clusterIPs() []check {
	return []check{
		{
			name: "general", services: []service{{name: "web", endpoints: all, sctp: true}},
			probes: lines(`
				pod tcp cluster:80 = ` + all + ` as self
				pod udp cluster:80 = ` + all + ` as self
				pod tcp cluster:90 = ` + all + ` as self
				host tcp cluster:80 = ` + all + ` as node
				host udp cluster:80 = ` + all + ` as node
				outside tcp cluster:80 = ` + all + ` as node
				outside udp cluster:80 = ` + all + ` as node
				web-1 tcp cluster:80 = ` + all + ` as node+self
				web-1 udp cluster:80 = ` + all + ` as node+self
				pod sctp cluster:80 = ` + all + ` as self
				outside sctp cluster:80 = ` + all + ` as node
				host sctp cluster:80 = ` + all + ` as node
			`),
		},
		{
			name: "nobody-s-port", services: []service{{name: "web", endpoints: all}},
			probes: lines(`
				pod tcp cluster:81 = refused
				pod udp cluster:81 = refused
				outside tcp cluster:81 = refused
				outside udp cluster:81 = refused
				host tcp cluster:81 = refused
				host udp cluster:81 = not sent
				pod sctp cluster:80 = refused
				outside sctp cluster:80 = refused
				pod icmp cluster:80 = refused
				outside icmp cluster:80 = refused
				host icmp cluster:80 = not sent
			`),
		},
		{
			name: "unused", services: []service{{name: "web", endpoints: all}},
			probes: lines(`
				pod tcp unused:80 = dropped
				pod udp unused:80 = dropped
				pod sctp unused:80 = dropped
				pod icmp unused:80 = dropped
				outside tcp unused:80 = dropped
				outside udp unused:80 = dropped
				host tcp unused:80 = dropped
				host udp unused:80 = not sent
			`),
		},
		{
			name: "hairpin", services: []service{{name: "web", endpoints: "web-1"}},
			probes: lines(`
				web-1 tcp cluster:80 = web-1 as node
				web-1 udp cluster:80 = web-1 as node
				web-2 tcp cluster:80 = web-1 as self
			`),
		},
		{
			name: "no-endpoints", services: []service{{name: "web"}},
			probes: lines(`
				pod tcp cluster:80 = refused
				pod udp cluster:80 = refused
				outside tcp cluster:80 = refused
				outside udp cluster:80 = refused
				host tcp cluster:80 = refused
			`),
		},
		{
			name: "one-port-without", services: []service{{name: "web", endpoints: all, slice: func(s *discoveryv1.EndpointSlice) {
				s.Ports = s.Ports[:2]
			}}},
			probes: lines(`
				pod tcp cluster:80 = ` + all + ` as self
				pod udp cluster:80 = ` + all + ` as self
				pod tcp cluster:90 = refused
				pod udp cluster:90 = refused
			`),
		},
		{
			name: "lifecycle", services: []service{{name: "web", endpoints: "web-1"}},
			probes: lines(`pod tcp cluster:80 = web-1 as self`),
			then: []step{
				{put("web", func(s *service) { s.kind = corev1.ServiceTypeNodePort }), lines(`
					pod tcp cluster:80 = web-1 as self
					outside tcp node:80 = web-1 as node
				`)},
				{put("web", func(s *service) { s.kind, s.ingress = corev1.ServiceTypeLoadBalancer, 1 }), lines(`
					pod tcp cluster:80 = web-1 as self
					outside tcp node:80 = web-1 as node
					outside tcp lb:80 = web-1 as node
				`)},
				{put("web", nil), lines(`
					pod tcp cluster:80 = web-1 as self
					outside tcp node:80 = refused
					outside tcp lb:80 = unreachable
				`)},
				{put("web", func(s *service) { s.change = func(o *corev1.Service) { o.Spec.Ports[0].Port = 82 } }), lines(`
					pod tcp cluster:80 = refused
					pod tcp cluster:82 = web-1 as self
				`)},
				{func(ctx context.Context, r *run) error { return r.remove(ctx, "web") }, lines(`
					pod tcp cluster:80 = dropped
				`)},
			},
		},
		{
			name: "headless", services: []service{{name: "web", external: 1, endpoints: "web-1", change: func(s *corev1.Service) { s.Spec.ClusterIP = corev1.ClusterIPNone }}},
			probes: lines(`
				pod tcp external:80 = unreachable
				outside tcp external:80 = unreachable
			`),
		},
		{
			name: "external-name", services: []service{{name: "web", kind: corev1.ServiceTypeNodePort, endpoints: "web-1"}},
			probes: lines(`
				pod tcp cluster:80 = web-1 as self
				outside tcp node:80 = web-1 as node
			`),
			then: []step{
				{put("web", func(s *service) {
					s.kind = corev1.ServiceTypeExternalName
					s.change = func(o *corev1.Service) { o.Spec.ExternalName = "web.example.com" }
				}), lines(`
					pod tcp cluster:80 = dropped
					outside tcp node:80 = refused
				`)},
				{put("web", func(s *service) { s.kind = corev1.ServiceTypeClusterIP }), lines(`pod tcp cluster:80 = web-1 as self`)},
			},
		},
		{
			name: "others-from-the-start", services: []service{{name: "web", external: 1, endpoints: "web-1", change: func(o *corev1.Service) {
				o.Labels = map[string]string{"service.kubernetes.io/service-proxy-name": "other"}
			}}},
			probes: lines(`
				pod tcp cluster:80 = dropped
				pod tcp external:80 = unreachable
			`),
			then: []step{{put("web", func(s *service) { s.change = nil }), lines(`
				pod tcp cluster:80 = web-1 as self
				pod tcp external:80 = web-1 as node
			`)}},
		},
		{
			name: "no-cluster-ip", services: []service{
				{name: "web", kind: corev1.ServiceTypeNodePort, endpoints: "web-1"},
			},
			probes: lines(`pod tcp cluster:80 = web-1 as self`),
			then: []step{
				{put("web", func(s *service) {
					s.change = func(o *corev1.Service) {
						o.Labels = map[string]string{"service.kubernetes.io/service-proxy-name": "other"}
					}
				}), lines(`
					pod tcp cluster:80 = dropped
					outside tcp node:80 = refused
				`)},
			},
		},
	}
}

// change may be nil.
func put(name string, change func(*service)) func(context.Context, *run) error {
	return func(ctx context.Context, r *run) error {
		s := r.service(name)
		if change != nil {
			change(&s)
		}
		return r.put(ctx, s)
	}
}
