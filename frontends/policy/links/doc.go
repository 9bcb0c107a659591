// Package links finds the host's end of each pod's interface from the kernel's state, and follows
// the changes. It asks no network plugin and needs no capability.
//
// It takes messages of rtnetlink, and delivers the addresses with a changed model.Link. Read
// links.go first (the loop), then table.go (the rules) and rtnetlink.go (requests and decoding).
//
// # Routed plugins
//
// A unicast route to one address without a gateway leads to its interface, in any table but local.
// The table main comes first, then the lowest table, then the lowest metric. A route is ignored if
// it leads to loopback or a bridge, or has a type of service, a source prefix, several next hops or
// a next hop object.
//
// If an address of the host is removed, the kernel removes the IPv4 routes with this preferred
// source without an event. Such a link stays until its interface is removed.
//
// # Bridged plugins
//
// A neighbour of a bridge gives the MAC of an address, and the forwarding table of the bridge the
// port of the MAC. Pods can announce any address and send from any MAC. So the first port of an
// address stays until it is removed or leaves the bridge, even if messages were lost. A route wins
// over a port.
//
// This does not protect an address without a port, nor against forgery before the start. After a
// restart Adopt restores the ports of the earlier process. A port has at most 64 addresses; more
// are ignored, and logged once. IPv6 link-local addresses are ignored, because several pods may
// share one. If a bridge filters VLANs, its own packets must be in VLAN 1, the default.
//
// # Lost messages
//
// If the socket fails or overflows, Run waits, opens another one, asks for the whole state, and
// delivers the difference. Each reason is logged once.
//
// # Cost
//
// The cost of an event is proportional to its change. Forwarding tables are not stored: the kernel
// is asked for one entry for each neighbour without a port. Memory is proportional to the routes to
// one address, the neighbours of bridges, and the interfaces.
//
// # Concurrency
//
// A Tracker is safe for concurrent use. Run and Adopt call Config.Deliver, one at a time.
package links
