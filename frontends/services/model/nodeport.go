package model

import "net/netip"

// Loopback are the loopback addresses of NodePorts.
var Loopback = [NumFamilies]netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}

// NodePortList says on which addresses of this node NodePorts are served. The zero value means Primary.
type NodePortList struct {
	// without loopback addresses; length 0 means all addresses
	Prefixes []netip.Prefix
	// the Node object's addresses
	Primary bool
	// families with a prefix of loopback addresses
	Loopback [NumFamilies]bool
}

// NodePorts returns a list of masked prefixes, which may be loopback addresses.
func NodePorts(prefixes ...netip.Prefix) (l NodePortList) {
	for _, p := range prefixes {
		if p.Addr().IsLoopback() {
			l.Loopback[FamilyOf(p.Addr())] = true
		} else {
			l.Prefixes = append(l.Prefixes, p)
		}
	}
	return l
}

// OnlyPrimary reports whether the list has nothing but the node's own addresses.
func (l *NodePortList) OnlyPrimary() bool {
	return len(l.Prefixes) == 0 && l.Loopback == ([NumFamilies]bool{})
}

// LoopbackMode says what happens to flows to NodePorts on loopback addresses of a family.
type LoopbackMode uint8

const (
	LoopbackIgnored LoopbackMode = iota
	// TCP is served, UDP and SCTP are rejected.
	LoopbackServed
	LoopbackRejected
)

// Rejects reports whether packets of the protocol are rejected.
func (m LoopbackMode) Rejects(p Protocol) bool {
	return m == LoopbackRejected || m == LoopbackServed && p != TCP
}

// LoopbackModes returns the mode of each family. gate is the feature gate, nil if it is not set.
func (l *NodePortList) LoopbackModes(gate *bool) (out [NumFamilies]LoopbackMode) {
	for f, listed := range l.Loopback {
		switch {
		case gate != nil && !*gate:
		case listed:
			out[f] = LoopbackServed
		case gate != nil:
			out[f] = LoopbackRejected
		}
	}
	return out
}

// NodePortAddresses are the local addresses for NodePorts in one family, without loopback addresses.
type NodePortAddresses struct {
	All bool
	// if All is false; empty means no NodePorts
	Prefixes []netip.Prefix
	// Prefixes has only the node's own address.
	Primary bool
}

// Of returns the addresses for a family. The node's own address is left out while it is unknown; a list of
// only this address means all addresses until then.
func (l *NodePortList) Of(node *Node, f Family) (out NodePortAddresses) {
	for _, p := range l.Prefixes {
		switch {
		case FamilyOf(p.Addr()) != f:
		case p.Bits() == 0:
			return NodePortAddresses{All: true}
		default:
			out.Prefixes = append(out.Prefixes, p)
		}
	}
	only := l.OnlyPrimary()
	if only && node.Addresses == ([NumFamilies]netip.Addr{}) {
		return NodePortAddresses{All: true}
	}
	if l.Primary || only {
		out.Primary = len(out.Prefixes) == 0
		if a := node.Addresses[f]; a.IsValid() {
			out.Prefixes = append(out.Prefixes, netip.PrefixFrom(a, a.BitLen()))
		}
	}
	return out
}
