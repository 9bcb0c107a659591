package differential

import (
	corev1 "k8s.io/api/core/v1"
)

// Each group is a few probes under another configuration of both proxies.

func web(name, endpoints string, change func(*corev1.Service), probes string) []check {
	return []check{{
		name: name, probes: lines(probes),
		services: []service{{name: "web", kind: corev1.ServiceTypeLoadBalancer, endpoints: endpoints, external: 1, ingress: 1, change: change}},
	}}
}

// listedAddresses: NodePorts only on listed addresses.
//
// Behaviour: 20, 24.
func listedAddresses() []check {
	return web("listed", all, nil, `
		outside tcp gateway:80 v4 = `+all+` as node
		pod tcp gateway:80 = `+all+` as node
		pod tcp node:80 = refused
		outside tcp node:80 = refused
		outside udp node:80 = refused
		host tcp gateway:80 = `+all+` as node
		host tcp loopback:80 = refused
		pod tcp cluster:80 = `+all+` as self
	`)
}

// everyAddress: NodePorts on all local addresses but the loopback.
//
// Behaviour: 21, 24.
func everyAddress() []check {
	return web("every", all, nil, `
		pod tcp gateway:80 = `+all+` as node
		pod udp gateway:80 = `+all+` as node
		outside tcp node:80 = `+all+` as node
		outside udp node:80 = `+all+` as node
		host tcp node:80 = `+all+` as node
		host tcp loopback:80 = refused
		pod tcp node-2:80 = refused
	`)
}

// oneFamily: a list of NodePort addresses without IPv6.
//
// Behaviour: 22.
func oneFamily() []check {
	return web("closed", all, nil, `
		outside tcp node:80 v4 = `+all+` as node
		outside tcp node:80 v6 = `+all+` as node
		pod tcp gateway:80 v4 = refused
	`)
}

// masqueradeAll: backends never see the client's address.
//
// Behaviour: 86.
func masqueradeAll() []check {
	return web("all", all, nil, `
		pod tcp cluster:80 = `+all+` as node
		pod udp cluster:80 = `+all+` as node
		outside tcp cluster:80 = `+all+` as node
		host tcp cluster:80 = `+all+` as node
		outside tcp node:80 = `+all+` as node
	`)
}

// nobodyLocal: the sources of pods are unknown.
//
// Behaviour: 53, 88.
func nobodyLocal() []check {
	return append(web("cluster", "web-1 web-2", nil, `
		pod tcp cluster:80 = web-1 web-2 as self
		outside tcp cluster:80 = web-1 web-2 as self
		web-1 tcp cluster:80 = web-1 web-2 as node+self
		outside tcp node:80 = web-1 web-2 as node
	`), web("local", "web-1 web-3", policy(false, true), `
		pod tcp node:80 = web-1 as self
		pod tcp lb:80 = web-1 as self
		outside tcp node:80 = web-1 as self
		host tcp node:80 = web-1 web-3 as node
	`)...)
}

// byNode: pods are in the node's own prefixes.
//
// Behaviour: 87, 90.
func byNode() []check {
	return append(web("cluster", "web-1 web-3", nil, `
		pod tcp cluster:80 = web-1 web-3 as self
		outside tcp cluster:80 = web-1 web-3 as node
		host tcp cluster:80 = web-1 web-3 as node
	`), web("local", "web-1 web-3", policy(false, true), `
		pod tcp node:80 = web-1 web-3 as self
		far tcp node:80 = web-1 as self
		outside tcp node:80 = web-1 as self
		host tcp node:80 = web-1 web-3 as node
	`)...)
}

// byInterface: pods are behind interfaces of a name.
//
// Behaviour: 90, 91.
func byInterface() []check { return byNode() }
