// Package links finds the host's end of the interface of each pod from what the kernel knows,
// and follows the changes. It asks no network plugin and needs no capability.
//
// In come messages of rtnetlink, out go the addresses whose model.Link differs. Read links.go
// first, which has the loop; table.go has the rules, and rtnetlink.go asks and decodes.
//
// # Routed plugins
//
// A unicast route to one address without a gateway leads to the interface of that address, in
// any table but local. The table main comes first, then the lowest table, and in a table the
// lowest metric. A route to loopback or to a bridge is ignored, and so is one with a type of
// service, a source prefix, several next hops or a next hop object.
//
// If an address of the host goes, the kernel removes the IPv4 routes that have it as their
// preferred source, and sends no event. Such a link stays until its interface goes.
//
// # Bridged plugins
//
// A neighbour of a bridge gives the MAC of an address, and the forwarding table of the bridge
// the port of the MAC. Pods can announce any address and send from any MAC. So the first port
// of an address stays until it goes or leaves the bridge, also if messages were lost. A route
// wins over a port.
//
// This does not protect an address that has no port yet, nor against what was forged before
// the start. After a restart Adopt gives addresses the ports that the earlier process knew. A port has at most 64 addresses; more are ignored, and logged once. IPv6
// link-local addresses are ignored, because several pods may have the same. If a bridge
// filters VLANs, its own packets must be in VLAN 1, the default.
//
// # Lost messages
//
// If the socket fails or overflows, Run opens another one after a wait, asks for everything,
// and delivers the difference. Each reason is logged once.
//
// # Cost
//
// An event costs what it changes. The forwarding tables of bridges are not stored: for a
// neighbour without a port the kernel is asked for one entry. Memory follows the routes to
// one address, the neighbours of bridges, and the interfaces.
//
// # Concurrency
//
// A Tracker is safe for concurrent use. Run and Adopt call Config.Deliver, one at a time.
package links
