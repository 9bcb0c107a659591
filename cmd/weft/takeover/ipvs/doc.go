// Package ipvs finds and removes the remains of kube-proxy in mode ipvs in a network namespace: virtual
// servers, the device kube-ipvs0 with addresses of Services, and sets of ipset.
//
// With weft's rules in force new connections are translated before IPVS sees them. Connections from
// before continue through IPVS, which needs their virtual server and their address on kube-ipvs0.
// So [Left.Release], called again until nothing waits, removes:
//
//  1. virtual servers of UDP, and others once no connection uses them, with their conntrack entries;
//  2. addresses, once no virtual server is left and no process of the node uses them as a source;
//  3. the device.
//
// [Left.DestroySets] comes after the iptables chains, whose rules use the sets.
//
// # Ownership
//
// A virtual server is kube-proxy's if its address is on kube-ipvs0, or if kube-proxy's sets have its
// address and port. Virtual servers by firewall mark, or that do not translate, are of other programs.
// An address on kube-ipvs0 is kube-proxy's if its sets or virtual servers have it; without sets, always.
// Everything else stays, and Left.Others names it.
//
// # Concurrency
//
// A Left is for one goroutine.
package ipvs
