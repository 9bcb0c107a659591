// Package explain is the commands "weft explain" and "weft trace": they show the way of a predicted
// or a real packet, with the deciding rule and its owner.
//
// Input is the rules of all programs, the kernel's routes, and weft's pods, Services and fragments.
// Package nft/eval evaluates the rules.
//
// # Traces
//
// "weft trace" publishes rules that set nftrace on the selected packets (selection.go), in a
// session with a time to live. Unless it is dropped, a packet is over after 200 ms without an
// event.
//
// # Bridges
//
// If the family bridge has rules, a packet passes them at the ports of bridges. A way is Undecided
// if the kernel's neighbour or forwarding tables lack an address (bridge.go). A trace sees bridged
// packets only with br_netfilter.
//
// # Assumptions
//
// The packet is the first of its connection, with unique addresses and ports. A source port that
// the kernel chooses at random is assumed unchanged. Without weft or a frontend, the answer lacks
// names.
package explain
