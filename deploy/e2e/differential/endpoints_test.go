package differential

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// endpoints: the choice of endpoints, and the reading of slices.
//
// Behaviour: 5, 60, 61, 63, 64, 65, 66, 67, 68, 69, 70, 98, 99, 103.
func endpoints() []check {
	nodePort := corev1.ServiceTypeNodePort
	return append(oddSlices(), []check{
		{
			name: "none-ready", services: []service{{name: "web", endpoints: "web-1- web-3-"}},
			probes: lines(`pod tcp cluster:80 = refused`),
		},
		{
			name: "all-terminating", services: []service{{name: "web", endpoints: "web-1- web-2! web-3~ web-4~"}},
			probes: lines(`
				pod tcp cluster:80 = web-3 web-4 as self
				pod udp cluster:80 = web-3 web-4 as self
			`),
		},
		{
			name: "local-terminating", services: []service{{name: "web", kind: nodePort, endpoints: "web-1~ web-3", change: policy(true, true)}},
			probes: lines(`
				outside tcp node:80 = web-1 as self
				pod tcp cluster:80 = web-1 as self
				pod tcp node:80 = web-3 as self
			`),
		},
		{
			name: "local-not-ready", services: []service{{name: "web", kind: nodePort, endpoints: "web-1- web-3", change: policy(true, true)}},
			probes: lines(`
				outside tcp node:80 = dropped
				pod tcp cluster:80 = dropped
			`),
		},
		{
			name: "twice", services: []service{{name: "web", endpoints: "web-1~ web-2", elsewhere: "web-1"}},
			probes: lines(`pod tcp cluster:80 = web-1 web-2 as self`),
		},
		{
			name: "rolling", services: []service{{name: "web", endpoints: "web-1"}},
			probes: lines(`pod tcp cluster:80 = web-1 as self`),
			then: []step{
				{put("web", func(s *service) { s.endpoints = "web-1 web-3-" }), lines(`pod tcp cluster:80 = web-1 as self`)},
				{put("web", func(s *service) { s.endpoints = "web-1 web-3" }), lines(`pod tcp cluster:80 = web-1 web-3 as self`)},
				{put("web", func(s *service) { s.endpoints = "web-1~ web-3" }), lines(`pod tcp cluster:80 = web-3 as self`)},
				{put("web", func(s *service) { s.endpoints = "web-1~ web-3!" }), lines(`pod tcp cluster:80 = web-1 as self`)},
				{put("web", func(s *service) { s.endpoints = "web-3!" }), lines(`pod tcp cluster:80 = refused`)},
				{put("web", func(s *service) { s.endpoints, s.elsewhere = "", "web-3 web-4" }), lines(`pod tcp cluster:80 = web-3 web-4 as self`)},
			},
		},
		{
			name: "moves-between-slices", services: []service{{name: "web", endpoints: "web-1", elsewhere: "web-3"}},
			probes: lines(`pod tcp cluster:80 = web-1 web-3 as self`),
			then: []step{
				{put("web", func(s *service) { s.endpoints, s.elsewhere = "web-1 web-3", "web-3" }), lines(`pod tcp cluster:80 = web-1 web-3 as self`)},
				{put("web", func(s *service) { s.endpoints, s.elsewhere = "web-1 web-3", "" }), lines(`pod tcp cluster:80 = web-1 web-3 as self`)},
			},
		},
	}...)
}

// oddSlices: unusual content.
func oddSlices() []check {
	v4 := func(change func(*discoveryv1.EndpointSlice)) func(*discoveryv1.EndpointSlice) {
		return func(s *discoveryv1.EndpointSlice) {
			if s.AddressType == discoveryv1.AddressTypeIPv4 {
				change(s)
			}
		}
	}
	return []check{
		{
			name: "other-number", services: []service{{name: "web", endpoints: "web-1", slice: func(s *discoveryv1.EndpointSlice) {
				// web-1 has it on 9090; the name counts.
				other := int32(9090)
				s.Ports[0].Port = &other
			}, change: func(s *corev1.Service) { s.Spec.Ports[2].Name = "nobody" }}},
			probes: lines(`
				pod tcp cluster:80 = web-1 as self
				pod udp cluster:80 = web-1 as self
				pod tcp cluster:90 = refused
			`),
		},
		{
			name: "ipv4-only", services: []service{{name: "web", kind: corev1.ServiceTypeNodePort, endpoints: all, slice: func(s *discoveryv1.EndpointSlice) {
				if s.AddressType == discoveryv1.AddressTypeIPv6 {
					s.Endpoints = nil
				}
			}}},
			probes: lines(`
				pod tcp cluster:80 v4 = ` + all + ` as self
				pod tcp cluster:80 v6 = refused
				outside tcp node:80 v4 = ` + all + ` as node
				outside tcp node:80 v6 = refused
			`),
		},
		{
			name: "single-family", services: []service{{name: "web", endpoints: all, change: func(s *corev1.Service) {
				one := corev1.IPFamilyPolicySingleStack
				s.Spec.IPFamilyPolicy, s.Spec.IPFamilies = &one, []corev1.IPFamily{corev1.IPv6Protocol}
			}}},
			probes: lines(`pod tcp cluster:80 v6 = ` + all + ` as self`),
		},
		{
			name: "headless-label", services: []service{{name: "web", endpoints: all, slice: func(s *discoveryv1.EndpointSlice) {
				s.Labels["service.kubernetes.io/headless"] = ""
			}}},
			probes: lines(`pod tcp cluster:80 = refused`),
		},
		{
			name: "no-service-label", services: []service{{name: "web", endpoints: all, slice: func(s *discoveryv1.EndpointSlice) {
				delete(s.Labels, discoveryv1.LabelServiceName)
			}}},
			probes: lines(`pod tcp cluster:80 = refused`),
		},
		{
			name: "no-conditions", services: []service{{name: "web", endpoints: "web-1", slice: func(s *discoveryv1.EndpointSlice) {
				s.Endpoints[0].Conditions = discoveryv1.EndpointConditions{}
			}}},
			probes: lines(`pod tcp cluster:80 = web-1 as self`),
		},
		{
			name: "no-port-number", services: []service{{name: "web", endpoints: "web-1", slice: func(s *discoveryv1.EndpointSlice) { s.Ports[0].Port = nil }}},
			probes: lines(`
				pod tcp cluster:80 = refused
				pod udp cluster:80 = web-1 as self
			`),
		},
		{
			name: "second-address", family: 4, services: []service{{name: "web", endpoints: "web-1", slice: v4(func(s *discoveryv1.EndpointSlice) {
				s.Endpoints[0].Addresses = append(s.Endpoints[0].Addresses, strings.Replace(s.Endpoints[0].Addresses[0], ".1.3", ".2.3", 1))
			})}},
			probes: lines(`pod tcp cluster:80 = web-1 as self`),
		},
		{
			name: "no-node-name", services: []service{{name: "web", endpoints: "web-1 web-2", change: policy(true, false), slice: func(s *discoveryv1.EndpointSlice) {
				s.Endpoints[0].NodeName = nil
			}}},
			probes: lines(`pod tcp cluster:80 = web-2 as self`),
		},
		{
			name: "names", family: 4, services: []service{{name: "web", endpoints: "web-1", slice: func(s *discoveryv1.EndpointSlice) {
				if s.AddressType == discoveryv1.AddressTypeIPv6 {
					s.AddressType = discoveryv1.AddressTypeFQDN
					s.Endpoints[0].Addresses = []string{"web.example.com"}
				}
			}}},
			probes: lines(`pod tcp cluster:80 = web-1 as self`),
		},
	}
}

// policy sets traffic policies: Local for internal, external.
func policy(internal, external bool) func(*corev1.Service) {
	return func(s *corev1.Service) {
		if internal {
			p := corev1.ServiceInternalTrafficPolicyLocal
			s.Spec.InternalTrafficPolicy = &p
		}
		if external {
			s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
		}
	}
}
