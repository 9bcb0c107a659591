// Package explain is the verbs "weft explain" and "weft trace": what would happen to a packet, and
// what happens to real ones, and which rule, whose, decides that.
//
// In come a [Question], the rules of all programs in the kernel, the kernel's routes and
// addresses, and what weft's socket tells of pods, Services and fragments; out goes an [Answer].
// Read ask.go first. The package only asks and describes: package nft/eval evaluates the rules.
//
// The ends of the packet are resolved in place.go, the kernel's routes in host.go. The Service
// and its endpoints come from the Service frontend (service.go), also those that are not used.
// Rules are described by step.go, with the text that package nft/decompile finds and the fragment that their userdata names. Why a packet is stopped, and what to do, is one table for explain and trace (cause.go).
//
// # Traces
//
// "weft trace" publishes rules that set nftrace on the packets that it is asked for (selection.go),
// as a session with a time to live, so that weft removes them whatever becomes of the command. It
// reads the kernel's events (nft/kernel), puts those of a packet that it has selected together (traced.go), and describes each
// as a step of an answer. What it keeps is bounded: 256 packets of 512 steps. The kernel does not say
// which event of a packet is its last: a packet that was not dropped is over after 200 ms
// without an event.
//
// # Bridges
//
// If there are rules of the family bridge, a packet passes them at the ports of bridges. The kernel's neighbours and
// forwarding tables say which ports (bridge.go); the way of a packet is Undecided if they do not know an address. A pod
// on a bridge is assumed to send packets for other pods on it to their ports, not to the node. A trace selects packets at
// the hooks of IP, so it has what a bridge carries only with br_netfilter.
//
// # What is assumed
//
// The packet is the first of its connection, and no other connection has its addresses and
// ports. Its reply is evaluated as a packet of an established connection; a source port that
// the kernel chooses at random is taken to be the one from before. Without weft, or
// without one of its frontends, the answer lacks names, and nothing else.
package explain
