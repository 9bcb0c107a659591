// Package sockdiag asks the kernel about the TCP sockets of this network namespace (sock_diag(7)).
//
// Addresses and ports go in and out as numbers or texts of net/netip; the package keeps nothing. All
// functions are safe for concurrent use. Their errors are those of the netlink socket, and for a
// kernel without sock_diag ENOENT.
package sockdiag
