package differential

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// nodePorts: their addresses, and the clients' source addresses.
//
// Behaviour: 19, 24, 25, 27, 28, 30, 89.
func nodePorts() []check {
	nodePort := corev1.ServiceTypeNodePort
	return []check{
		{
			name: "general", services: []service{{name: "web", kind: nodePort, endpoints: all, sctp: true}},
			probes: lines(`
				outside tcp node:80 = ` + all + ` as node
				outside udp node:80 = ` + all + ` as node
				outside sctp node:80 = ` + all + ` as node
				pod tcp node:80 = ` + all + ` as node
				pod udp node:80 = ` + all + ` as node
				web-1 tcp node:80 = ` + all + ` as node
				far tcp node:80 = ` + all + ` as node
				host tcp node:80 = ` + all + ` as node
				host udp node:80 = ` + all + ` as node
				pod tcp gateway:80 = refused
				host tcp loopback:80 = refused
				pod tcp node-2:80 = refused
				host tcp node-2:80 = refused
				outside icmp node:=0 = echo as echo
			`),
		},
		{
			name: "one-number", services: []service{{name: "web", kind: nodePort, endpoints: all, change: func(s *corev1.Service) {
				s.Spec.Ports[0].NodePort, s.Spec.Ports[1].NodePort = 30053, 30053
			}}},
			probes: lines(`
				outside tcp node:=30053 = ` + all + ` as node
				outside udp node:=30053 = ` + all + ` as node
			`),
		},
		{
			name: "external-ip-first", family: 4, services: []service{
				{name: "web", kind: nodePort, endpoints: "web-1", change: func(s *corev1.Service) { s.Spec.Ports[0].NodePort = 30080 }},
				{name: "other", endpoints: "web-3", change: func(s *corev1.Service) {
					s.Spec.ExternalIPs, s.Spec.Ports[0].Port = []string{"192.168.200.11"}, 30080
				}},
			},
			probes: lines(`outside tcp node:=30080 = web-3 as node`),
		},
		{
			name: "none-allocated", services: []service{{name: "web", kind: corev1.ServiceTypeLoadBalancer, endpoints: all, ingress: 1, change: func(s *corev1.Service) {
				no := false
				s.Spec.AllocateLoadBalancerNodePorts = &no
			}}},
			probes: lines(`outside tcp lb:80 = ` + all + ` as node`),
		},
	}
}

// addresses: external and load balancer addresses.
//
// Behaviour: 9, 32, 33, 34, 38, 39, 40, 41, 47, 89.
func addresses() []check {
	balancer := corev1.ServiceTypeLoadBalancer
	return []check{
		{
			name: "external", services: []service{{name: "web", endpoints: all, external: 2, sctp: true}},
			probes: lines(`
				outside tcp external:80 = ` + all + ` as node
				outside udp external-2:90 = ` + all + ` as node
				outside sctp external:80 = ` + all + ` as node
				pod tcp external:80 = ` + all + ` as node
				web-1 tcp external:80 = ` + all + ` as node
				host tcp external:80 = ` + all + ` as node
				host udp external:80 = ` + all + ` as node
				pod tcp cluster:80 = ` + all + ` as self
				pod tcp external:81 = unreachable
				outside tcp external:81 = unreachable
			`),
		},
		{
			name: "external-on-balancer", services: []service{{name: "web", kind: balancer, endpoints: all, external: 1, ingress: 1, change: ranges("10.1.0.0/16", "fd01::/16")}},
			probes: lines(`
				outside tcp external:80 = ` + all + ` as node
				outside tcp node:80 = ` + all + ` as node
				pod tcp cluster:80 = ` + all + ` as self
				outside tcp lb:80 = dropped
			`),
		},
		{
			name: "balancer", services: []service{{name: "web", kind: balancer, endpoints: all, ingress: 2, sctp: true}},
			probes: lines(`
				outside tcp lb:80 = ` + all + ` as node
				outside udp lb-2:80 = ` + all + ` as node
				outside sctp lb:80 = ` + all + ` as node
				pod tcp lb:80 = ` + all + ` as node
				host tcp lb:80 = ` + all + ` as node
				outside tcp node:80 = ` + all + ` as node
				outside tcp lb:81 = unreachable
				pod tcp lb:81 = unreachable
			`),
		},
		{
			name: "no-endpoints", services: []service{{name: "web", kind: balancer, external: 1, ingress: 1}},
			probes: lines(`
				outside tcp external:80 = refused
				outside udp external:80 = refused
				pod tcp external:80 = refused
				host tcp external:80 = refused
				outside tcp lb:80 = refused
				pod udp lb:80 = refused
				host tcp lb:80 = refused
				outside tcp node:80 = refused
				outside udp node:80 = refused
				pod tcp node:80 = refused
				pod udp node:80 = refused
				host tcp node:80 = refused
			`),
		},
		{
			name: "balancer-proxies", services: []service{{name: "web", kind: balancer, endpoints: all, ingress: 2, status: func(s *corev1.ServiceStatus) {
				mode := corev1.LoadBalancerIPModeProxy
				// The addresses of lb; those of lb-2 stay VIPs.
				s.LoadBalancer.Ingress[0].IPMode, s.LoadBalancer.Ingress[1].IPMode = &mode, &mode
				s.LoadBalancer.Ingress = append(s.LoadBalancer.Ingress, corev1.LoadBalancerIngress{Hostname: "lb.example.com"})
			}}},
			probes: lines(`
				pod tcp lb:80 = unreachable
				outside tcp lb:80 = unreachable
				outside tcp lb-2:80 = ` + all + ` as node
			`),
		},
		{
			name: "balancer-moves", services: []service{{name: "web", kind: balancer, endpoints: "web-1", ingress: 1}},
			probes: lines(`outside tcp lb:80 = web-1 as node`),
			then: []step{
				{put("web", func(s *service) { s.ingress = 2 }), lines(`
					outside tcp lb:80 = web-1 as node
					outside tcp lb-2:80 = web-1 as node
				`)},
				{put("web", func(s *service) { s.ingress = 0 }), lines(`
					outside tcp lb:80 = unreachable
					outside tcp lb-2:80 = unreachable
					outside tcp node:80 = web-1 as node
				`)},
			},
		},
	}
}

func ranges(all ...string) func(*corev1.Service) {
	return func(s *corev1.Service) { s.Spec.LoadBalancerSourceRanges = all }
}

// ownAddress adds the check's load balancer address to the nodes, or removes it.
func ownAddress(verb string) func(context.Context, *run) error {
	return func(ctx context.Context, r *run) error {
		for _, s := range r.world.sides() {
			if _, err := s.lab.Nodes[0].Run(ctx, "ip", "address", verb, r.vip("web", "lb", 0, false).String()+"/32", "dev", "lo"); err != nil {
				return err
			}
		}
		return nil
	}
}

// sourceRanges: admission to load balancer addresses.
//
// Behaviour: 26, 42, 43, 44, 45, 46, 47, 48.
func sourceRanges() []check {
	balancer := func(change func(*corev1.Service)) []service {
		return []service{{name: "web", kind: corev1.ServiceTypeLoadBalancer, endpoints: "web-1 web-3", ingress: 2, change: change}}
	}
	const outside = "192.168.200.100/32"
	return []check{
		{
			name: "outside-alone", services: balancer(ranges(outside, "fd00:200::101/128")),
			probes: lines(`
				outside tcp lb:80 v4 = web-1 web-3 as node
				outside udp lb-2:80 v4 = web-1 web-3 as node
				outside tcp lb:80 v6 = dropped
				pod tcp lb:80 = dropped
				pod udp lb:80 = dropped
				host tcp lb:80 = dropped
				host udp lb:80 = not sent
				pod tcp cluster:80 = web-1 web-3 as self
				pod tcp node:80 = web-1 web-3 as node
				far tcp node:80 = web-1 web-3 as node
			`),
		},
		{
			name: "pods", services: balancer(ranges("10.244.0.0/16", " fd00:10:244::/48 ", "10.244.1.0/24")),
			probes: lines(`
				pod tcp lb:80 = web-1 web-3 as node
				outside tcp lb:80 = dropped
				outside udp lb:80 = dropped
			`),
		},
		{
			name: "node", services: balancer(ranges("192.168.200.11/32", "fd00:200::b/128")),
			probes: lines(`
				host tcp lb:80 = web-1 web-3 as node
				pod tcp lb:80 = dropped
				outside tcp lb:80 = dropped
			`),
		},
		{
			// A node with the balancer's address on an interface uses it as source.
			name: "own-address", family: 4, services: balancer(ranges("192.168.200.0/24")), probes: lines(`host tcp lb:80 = web-1 web-3 as node`),
			then: []step{
				{ownAddress("replace"), lines(`
					host tcp lb:80 = web-1 web-3 as node
					outside tcp lb:80 = web-1 web-3 as node
				`)},
				{ownAddress("delete"), lines(`host tcp lb:80 = web-1 web-3 as node`)},
			},
		},
		{
			name: "everybody", services: balancer(ranges("10.1.0.0/16", "0.0.0.0/0", "::/0")),
			probes: lines(`
				outside tcp lb:80 = web-1 web-3 as node
				pod tcp lb:80 = web-1 web-3 as node
			`),
		},
		{
			name: "one-family", services: balancer(ranges("10.1.0.0/16")),
			probes: lines(`
				outside tcp lb:80 v4 = dropped
				outside tcp lb:80 v6 = web-1 web-3 as node
			`),
		},
		{
			name: "open-connection", services: []service{{name: "web", kind: corev1.ServiceTypeLoadBalancer, endpoints: "web-1", ingress: 1}},
			probes: lines(`outside tcp lb:80 flow=open = web-1 as node`),
			then: []step{
				{put("web", func(s *service) { s.change = ranges("10.1.0.0/16", "fd01::/16") }), lines(`
					outside tcp lb:80 flow=open = web-1 as node
					outside tcp lb:80 = dropped
				`)},
				{put("web", nil), lines(`outside tcp lb:80 = web-1 as node`)},
			},
		},
	}
}
