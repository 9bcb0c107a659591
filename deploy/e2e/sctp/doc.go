// Package sctp is SCTP over raw sockets, for a kernel that has no SCTP sockets. It has
// the functions of github.com/ishidawataru/sctp that agnhost, Kubernetes' test server,
// uses, and go.mod of deploy/e2e puts it in the place of that module. So the specs with
// SCTP run: the packets are real, and nftables, conntrack and NAT treat them as
// any others. Read association.go first.
//
// An association has the four packets at its start, data that is acknowledged, retransmission,
// and an orderly end (RFC 9260). It has one stream and one address at each end, sends one
// message at a time, and a message is at most one packet. There is no congestion control. A packet for a port without a
// server is not answered, because other programs in the network namespace may have it.
//
// # Concurrency
//
// Listeners and connections are safe for concurrent use. Each has one goroutine that
// reads packets.
//
// # Errors
//
// An association that cannot be made retransmits until its connection is closed: a caller that does not want to
// wait so long has a timeout of its own, as agnhost does.
package sctp
