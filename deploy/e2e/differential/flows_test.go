package differential

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// flows: open conversations during changes.
//
// Behaviour: 12, 13, 105, 106, 107, 108, 109, 110, 111, 112, 116.
func flows() []check {
	nodePort := corev1.ServiceTypeNodePort
	remove := func(ctx context.Context, r *run) error { return r.remove(ctx, "web") }
	endpoints := func(list string) func(context.Context, *run) error {
		return put("web", func(s *service) { s.endpoints = list })
	}
	const a = "pod udp cluster:80 flow=a = "
	return []check{
		{
			name: "replaced", services: []service{{name: "web", kind: nodePort, endpoints: "web-1", external: 1}},
			probes: lines(a + `web-1 as self
				outside udp cluster:80 flow=b = web-1 as node
				outside udp node:80 flow=c = web-1 as node
				outside udp external:80 flow=d = web-1 as node
				host udp cluster:80 flow=e = web-1 as node
				pod tcp cluster:80 flow=t = web-1 as self
			`),
			then: []step{{endpoints("web-3"), lines(a + `web-3 as self
				outside udp cluster:80 flow=b = web-3 as node
				outside udp node:80 flow=c = web-3 as node
				outside udp external:80 flow=d = web-3 as node
				host udp cluster:80 flow=e = web-3 as node
				pod tcp cluster:80 flow=t = web-1 as self
			`)}},
		},
		{
			name: "drains", services: []service{{name: "web", endpoints: "web-1"}}, probes: lines(a + `web-1 as self`),
			then: []step{
				{endpoints("web-1~ web-3"), lines(a + `web-1 as self
					pod udp cluster:80 = web-3 as self
				`)},
				{endpoints("web-1! web-3"), lines(a + `web-3 as self`)},
			},
		},
		{
			name: "others-stay", services: []service{{name: "web", endpoints: "web-1"}}, probes: lines(a + `web-1 as self`),
			then: []step{
				{endpoints("web-1 web-2 web-3"), lines(a + `web-1 as self`)},
				{endpoints("web-1 web-3"), lines(a + `web-1 as self`)},
			},
		},
		{
			name: "not-ready", services: []service{{name: "web", endpoints: "web-1"}}, probes: lines(a + `web-1 as self`),
			then: []step{{endpoints("web-1- web-3"), lines(a + `web-3 as self`)}},
		},
		{
			name: "policy-changes", services: []service{{name: "web", kind: nodePort, endpoints: "web-3"}},
			probes: lines(a + `web-3 as self
				outside udp node:80 flow=b = web-3 as node
			`),
			then: []step{{put("web", func(s *service) { s.endpoints, s.change = "web-1 web-3", policy(true, true) }), lines(a + `web-3 as self
				outside udp node:80 flow=b = web-3 as node
				pod udp cluster:80 = web-1 as self
				outside udp node:80 = web-1 as self
			`)}},
		},
		{
			name: "scaled-to-zero", services: []service{{name: "web", kind: nodePort, endpoints: "web-1"}},
			probes: lines(a + `web-1 as self
				outside udp node:80 flow=b = web-1 as node
			`),
			then: []step{
				{endpoints(""), lines(a + `refused
					outside udp node:80 flow=b = web-1 as node
				`)},
				{endpoints("web-3"), lines(a + `web-3 as self
					outside udp node:80 flow=b = web-3 as node
				`)},
			},
		},
		{
			name: "first-endpoint", services: []service{{name: "web"}}, probes: lines(a + `refused`),
			then: []step{{endpoints("web-3"), lines(a + `web-3 as self`)}},
		},
		{
			name: "deleted", services: []service{{name: "web", endpoints: "web-1"}}, probes: lines(a + `web-1 as self`),
			then: []step{{remove, lines(a + `web-1 as self`)}},
		},
		{
			name: "deleted-tcp", services: []service{{name: "web", endpoints: "web-1"}}, probes: lines(`pod tcp cluster:80 flow=t = web-1 as self`),
			then: []step{
				{endpoints(""), lines(`
					pod tcp cluster:80 flow=t = web-1 as self
					pod tcp cluster:80 = refused
				`)},
				{remove, lines(`
					pod tcp cluster:80 flow=t = web-1 as self
					pod tcp cluster:80 = dropped
				`)},
			},
		},
		{
			name: "address-reused", services: []service{{name: "web", endpoints: "web-1"}}, probes: lines(`pod tcp cluster:80 = web-1 as self`),
			then: []step{{func(ctx context.Context, r *run) error {
				old := r.object("web")
				if err := r.remove(ctx, "web"); err != nil {
					return err
				}
				return r.put(ctx, service{name: "other", endpoints: "web-3", change: func(s *corev1.Service) {
					s.Spec.ClusterIP, s.Spec.ClusterIPs = old.Spec.ClusterIP, old.Spec.ClusterIPs
				}})
			}, lines(`pod tcp other/cluster:80 = web-3 as self`)}},
		},
	}
}

// flowsAlone must be alone, because kube-proxy behaves correctly as soon as any endpoint of a UDP port
// changes.
//
// Behaviour: 113.
func flowsAlone() []check {
	return []check{
		{
			name: "new-address", services: []service{{name: "web", endpoints: "web-1"}}, probes: lines(`outside udp external:80 flow=a = dropped`),
			then: []step{{func(ctx context.Context, r *run) error {
				s := r.service("web")
				s.external = 1
				return r.putService(ctx, s)
			}, lines(`outside udp external:80 flow=a = dropped`)}},
		},
	}
}

// serviceCIDRs: an additional range.
//
// Behaviour: 15, 16, 17.
func serviceCIDRs() []check {
	return []check{{
		name: "added", family: 4, services: []service{{name: "web", endpoints: "web-1"}},
		probes: lines(`
			pod tcp unused:80 = dropped
			pod tcp 10.97.0.5:=80 = unreachable
		`)[:1],
		then: []step{{func(ctx context.Context, r *run) error {
			o := &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: "more"}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{"10.97.0.0/24"}}}
			if _, err := r.world.client().NetworkingV1().ServiceCIDRs().Create(ctx, o, metav1.CreateOptions{}); err != nil {
				return fmt.Errorf("create ServiceCIDR: %w", err)
			}
			return nil
		}, lines(`pod tcp 10.97.0.5:=80 = unreachable`)}},
	}}
}
