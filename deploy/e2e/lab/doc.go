// Package lab makes a small cluster network of namespaces: nodes on one link, pods behind each node, a host
// outside, and servers and clients for traffic.
//
// It is independent of Kubernetes and weft. The process must be in a private namespace (the package does not
// check this); other namespaces of the machine stay untouched.
//
//	control .1  ---+--- node-1 .11 --- pods 10.244.1.x
//	outside .100 --+--- node-2 .12 --- pods 10.244.2.x
//	          192.168.200.0/24, fd00:200::/64
//
// # Concurrency
//
// A Namespace is safe for concurrent use. It runs functions on its own threads, which never leave it.
package lab
