package model

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// cluster has the namespaces, their pods, and the pods at each address.
type cluster struct {
	nodeName   string
	namespaces map[string]*namespace
	locals     map[types.UID]*pod
	claims     claims
	links      links
	pods       int                    // with an address
	dirtyPods  map[types.UID]struct{} // local, since the last Refresh
}

type namespace struct {
	name     string
	labels   []label
	known    bool // the object exists
	pods     map[string]*pod
	policies labelIndex[*policy]
	sets     labelIndex[*set]
	byLabel  podIndex // pods by labels required by sets; nil until needed
}

// namespace gives a namespace only the label set by the API server until its object is known.
func (c *cluster) namespace(name string) *namespace {
	n := c.namespaces[name]
	if n == nil {
		n = &namespace{name: name, labels: []label{{corev1.LabelMetadataName, name}}, pods: make(map[string]*pod)}
		c.namespaces[name] = n
	}
	return n
}

func (c *cluster) forgetNamespace(n *namespace) {
	if !n.known && len(n.pods) == 0 && n.policies.empty() && n.sets.empty() {
		delete(c.namespaces, n.name)
	}
}

func (c *cluster) sharedAddresses(n *namespace) map[netip.Addr]struct{} {
	out := make(map[netip.Addr]struct{})
	if len(c.claims.several) == 0 {
		return out
	}
	for _, p := range n.pods {
		for _, a := range p.addresses() {
			if c.claims.several[a] != nil {
				out[a] = struct{}{}
			}
		}
	}
	return out
}

func (c *cluster) remove(p *pod) {
	if p == nil {
		return
	}
	delete(p.namespace.pods, p.key())
	p.namespace.byLabel.remove(p)
	for _, a := range p.addresses() {
		c.claims.remove(a, p)
	}
	c.pods--
	if p.local {
		delete(c.locals, p.uid)
		c.dirtyPods[p.uid] = struct{}{}
	}
}

func (c *cluster) add(p *pod) {
	if p == nil {
		return
	}
	p.namespace.pods[p.key()] = p
	p.namespace.byLabel.add(p)
	for _, a := range p.addresses() {
		c.claims.add(a, p)
	}
	c.pods++
	if p.local {
		c.locals[p.uid] = p
		c.dirtyPods[p.uid] = struct{}{}
	}
}

// dropIndex frees the index of a namespace without local pods, where no NetworkPolicy is active.
func (c *cluster) dropIndex(n *namespace) {
	if n.byLabel == nil {
		return
	}
	for _, p := range c.locals {
		if p.namespace == n {
			return
		}
	}
	n.byLabel = nil
}

// touchAddress also marks the pods at other addresses on the same interface.
func (c *cluster) touchAddress(a netip.Addr) {
	c.touchClaimants(a)
	for _, b := range c.links.at[c.links.of[a]] {
		c.touchClaimants(b)
	}
}

func (c *cluster) touchClaimants(a netip.Addr) {
	for _, p := range c.claims.at(a) {
		if p.local {
			c.dirtyPods[p.uid] = struct{}{}
		}
	}
}

// touchPod also marks the pods that share an address with p.
func (c *cluster) touchPod(p *pod) {
	c.dirtyPods[p.uid] = struct{}{}
	for _, a := range p.addresses() {
		c.touchAddress(a)
	}
}
