package model

import "net/netip"

// NodePortAddresses are the local addresses of one family that accept NodePorts.
type NodePortAddresses struct {
	// All means every local address except the loopback.
	All bool
	// Prefixes contain the addresses otherwise. None means that the family has no
	// NodePorts.
	Prefixes []netip.Prefix
	// Primary means that Prefixes has the node's own address.
	Primary bool
}

// NodePortAddressesOf returns the addresses for a family. configured are the prefixes of
// the configuration: a family that is not among them has no NodePorts, one with a prefix of
// length 0 has them on all addresses, and loopback addresses never accept them. Without
// configured it is the node's own address of the family, or every address while no address
// of the node is known.
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
