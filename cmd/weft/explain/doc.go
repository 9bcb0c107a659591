// Package explain is the commands "weft explain" and "weft trace". The first predicts the way of a packet,
// the second shows the way of real packets. Both name the deciding rule and its owner.
//
// Input is a [Question], the rules of all programs in the kernel, the kernel's routes and addresses, and
// weft's pods, Services and fragments. Output is an [Answer]. Read ask.go first. Package nft/eval evaluates
// the rules.
//
//   - place.go resolves the ends of the packet, host.go the kernel's routes.
//   - service.go gets the Service and all endpoints from the Service frontend.
//   - step.go describes a rule by its text (package nft/decompile) and the fragment in its userdata.
//   - cause.go is the table of causes and remedies for stopped packets.
//
// # Traces
//
// "weft trace" publishes rules that set nftrace on the selected packets (selection.go). They belong to a
// session with a time to live, so that weft removes them even if the command is killed. It groups the
// kernel's events by packet, and describes each as a step of an answer (traced.go). It keeps at most 256
// packets of 512 steps. The kernel does not mark a packet's last event: unless it is dropped, a packet is
// over after 200 ms without an event.
//
// # Bridges
//
// If the family bridge has rules, a packet passes them at the ports of bridges. The kernel's neighbour and
// forwarding tables name the ports (bridge.go); a way is Undecided if an address is missing there. A pod on
// a bridge is assumed to send packets for its neighbours to their ports, not to the node. A trace selects
// packets at the hooks of IP, so it sees bridged packets only with br_netfilter.
//
// # Assumptions
//
// The packet is the first of its connection, with unique addresses and ports. Its reply
// is evaluated as a packet of an established connection. A source port that the kernel chooses at random is
// assumed unchanged. Without weft or a frontend, the answer only lacks names.
package explain
