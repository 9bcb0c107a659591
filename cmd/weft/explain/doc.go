// Package explain is the verb "weft explain": it says what happens to a packet, and which rule,
// whose, decides that.
//
// In come a [Question], the rules of all programs in the kernel, the kernel's routes and
// addresses, and what weft's socket tells of pods, Services and fragments; out goes an [Answer].
// Read ask.go first. The package only asks and describes: package nft/eval evaluates the rules.
//
// The ends of the packet are resolved in place.go, the kernel's routes in host.go. The Service
// and its endpoints come from the Service frontend (service.go), also those that are not used.
// Rules are described by step.go, with the text and the fragment that weft knows (owners.go).
//
// # What is assumed
//
// The packet is the first of its connection, and no other connection has its addresses and
// ports. Its reply is evaluated as a packet of an established connection; a source port that
// the kernel chooses at random is taken to be the one from before. Without weft, or
// without one of its frontends, the answer lacks names and the text of rules, and nothing else.
package explain
