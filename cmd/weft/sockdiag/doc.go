// Package sockdiag asks the kernel about the TCP sockets of this network namespace (sock_diag(7)).
//
// All functions are safe for concurrent use. They return errors of the netlink socket, ENOENT for a
// kernel without sock_diag.
package sockdiag
