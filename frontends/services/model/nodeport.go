package model

import "net/netip"

// NodePortAddresses are the local addresses for NodePorts in one family.
type NodePortAddresses struct {
	// all addresses except loopback
	All bool
	// if All is false; empty means no NodePorts
	Prefixes []netip.Prefix
	// Prefixes has the node's own address.
	Primary bool
}

// NodePortAddressesOf returns the addresses for a family. A configured prefix of length 0 means all
// addresses. Without configured it is the node's own address, or every address while it is unknown.
func NodePortAddressesOf(configured []netip.Prefix, node *Node, f Family) NodePortAddresses {
	var out NodePortAddresses
	for _, p := range configured {
		switch {
		case FamilyOf(p.Addr()) != f || p.Addr().IsLoopback():
		case p.Bits() == 0:
			return NodePortAddresses{All: true}
		default:
			out.Prefixes = append(out.Prefixes, p)
		}
	}
	if len(configured) > 0 {
		return out
	}
	if node.Addresses == ([NumFamilies]netip.Addr{}) {
		return NodePortAddresses{All: true}
	}
	out.Primary = true
	if a := node.Addresses[f]; a.IsValid() {
		out.Prefixes = append(out.Prefixes, netip.PrefixFrom(a, a.BitLen()))
	}
	return out
}
