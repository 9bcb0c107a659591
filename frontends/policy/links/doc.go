// Package links finds the host's end of each pod's interface from the kernel's state, and follows
// the changes. It asks no network plugin and needs no capability.
//
// # Routed plugins
//
// A unicast route to one address without a gateway leads to its interface, in any table but local.
// The table main comes first, then the lowest table, then the lowest metric. Ignored are routes to
// loopback or a bridge, or with a type of service, a source prefix, several next hops or a next hop
// object.
//
// If an address of the host is removed, the kernel removes the IPv4 routes with this preferred
// source without an event. Such a link stays until its interface is removed.
//
// # Bridged plugins
//
// A neighbour of a bridge gives the MAC of an address, and the forwarding table its port. Pods can
// announce any address and MAC, so the first port of an address stays until it is removed or leaves
// the bridge. A route wins over a port.
//
// After a restart Adopt restores the ports of the earlier process. IPv6 link-local addresses are
// ignored, because several pods may share one. If a bridge filters VLANs, its own packets must be
// in VLAN 1, the default.
//
// # Lost messages
//
// If the socket fails or overflows, Run opens another one, asks for the whole state, and delivers
// the difference.
//
// # Concurrency
//
// A Tracker is safe for concurrent use. Run and Adopt call Config.Deliver, one at a time.
package links
