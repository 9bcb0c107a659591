package model

import (
	"cmp"
	"net/netip"
	"slices"
)

type pod struct {
	podFacts
	namespace *namespace
	labels    *sharedList[label]
	ports     *sharedList[namedPort]
	local     bool
	// Reported by the container runtime, not the API.
	sandbox bool
	ignored uint8 // a bit for each of addrs that a pod cannot have
}

// key is the pod's name, or unique for a sandbox.
func (p *pod) key() string {
	if p.sandbox {
		return "/" + string(p.uid)
	}
	return p.name.Name
}

func (p *pod) addresses() []netip.Addr {
	if p.ignored == 0 {
		return p.podFacts.addresses()
	}
	var out []netip.Addr
	for i, a := range p.podFacts.addresses() {
		if p.ignored&(1<<i) == 0 {
			out = append(out, a)
		}
	}
	return out
}

func older(a, b *pod) int {
	return cmp.Or(cmp.Compare(a.created, b.created), cmp.Compare(a.uid, b.uid))
}

func (p *pod) is(o *PodObject) bool {
	return p.podFacts.equal(&o.podFacts) && slices.Equal(p.labels.values, o.labels) && slices.Equal(p.ports.values, o.ports)
}

type claims struct {
	one     map[netip.Addr]*pod
	several map[netip.Addr][]*pod // shared addresses
	buffer  [1]*pod               // the result of at for a single pod
}

func (c *claims) add(a netip.Addr, p *pod) {
	if all := c.several[a]; all != nil {
		c.several[a] = append(all, p)
		return
	}
	first := c.one[a]
	if first == nil {
		c.one[a] = p
		return
	}
	delete(c.one, a)
	c.several[a] = []*pod{first, p}
}

func (c *claims) remove(a netip.Addr, p *pod) {
	all := c.several[a]
	if all == nil {
		delete(c.one, a)
		return
	}
	all = slices.DeleteFunc(all, func(o *pod) bool { return o == p })
	if len(all) > 1 {
		c.several[a] = all
		return
	}
	delete(c.several, a)
	c.one[a] = all[0]
}

// at returns the pods at an address. The result is valid until the next call.
func (c *claims) at(a netip.Addr) []*pod {
	if p := c.one[a]; p != nil {
		c.buffer[0] = p
		return c.buffer[:]
	}
	return c.several[a]
}
