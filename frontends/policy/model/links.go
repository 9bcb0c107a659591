package model

import (
	"net/netip"
	"slices"
)

type links struct {
	// at is sorted.
	of map[netip.Addr]Link
	at map[Link][]netip.Addr
}

// SetLink stores the interface for packets of an address; the zero Link removes it.
func (c *cluster) SetLink(a netip.Addr, l Link) {
	was := c.links.of[a]
	if was == l {
		return
	}
	c.touchAddress(a)
	delete(c.links.of, a)
	if rest := slices.DeleteFunc(c.links.at[was], func(b netip.Addr) bool { return b == a }); len(rest) > 0 {
		c.links.at[was] = rest
	} else {
		delete(c.links.at, was)
	}
	if l != (Link{}) {
		c.links.of[a] = l
		at, _ := slices.BinarySearchFunc(c.links.at[l], a, netip.Addr.Compare)
		c.links.at[l] = slices.Insert(c.links.at[l], at, a)
	}
	c.touchAddress(a)
}

// linkOf also returns more addresses without a pod that this node routes to the interface. On a
// bridge the pods themselves claim addresses, so more is empty. An interface shared by several pods
// counts for no pod.
func (c *cluster) linkOf(addresses []netip.Addr) (l Link, more []netip.Addr) {
	for _, a := range addresses {
		if l = c.links.of[a]; l != (Link{}) {
			break
		}
	}
	for _, a := range c.links.at[l] {
		switch {
		case slices.Contains(addresses, a):
		case len(c.claims.at(a)) > 0:
			return Link{}, nil
		case !l.Bridged:
			more = append(more, a)
		}
	}
	return l, more
}
