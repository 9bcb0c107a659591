// Package lab makes a small cluster network out of network namespaces: nodes on
// one link, pods behind each node, and a host outside; and the traffic in it:
// servers that say who answered and whom they saw, and the clients that ask them.
//
// It knows nothing of Kubernetes or of weft. It touches nothing outside the
// namespaces that it makes and the one that its process is in, which must be
// private (the package does not check that).
//
//	control .1  ---+--- node-1 .11 --- pods 10.244.1.x
//	outside .100 --+--- node-2 .12 --- pods 10.244.2.x
//	          192.168.200.0/24, fd00:200::/64
//
// # Concurrency
//
// A Namespace is safe for concurrent use. It keeps threads that are inside, and
// its functions run on them; a thread that has been inside never runs anything else.
package lab
