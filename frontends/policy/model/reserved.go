package model

import (
	"fmt"
	"net/netip"
	"slices"
)

// reserved has the addresses that a pod cannot have.
type reserved struct {
	node  *NodeObject // of the last event
	cidrs map[string]*ServiceCIDRObject
}

func (r *reserved) unusable(a netip.Addr) error {
	if r.node != nil && slices.Contains(r.node.node.Addresses, a) {
		return fmt.Errorf("%s is an address of the node", a)
	}
	for _, c := range r.cidrs {
		for _, p := range c.ranges {
			if p.Contains(a) {
				return fmt.Errorf("%s is in %s of ServiceCIDR %s", a, p, c.name)
			}
		}
	}
	return nil
}

// ignored returns a bit for each unusable address.
func (r *reserved) ignored(o *podFacts) (bits uint8) {
	for i, a := range o.addresses() {
		if r.unusable(a) != nil {
			bits |= 1 << i
		}
	}
	return bits
}
