// Package sctp is SCTP over raw sockets, for a kernel without SCTP sockets. go.mod of deploy/e2e uses it in
// place of github.com/ishidawataru/sctp, with the functions that agnhost, Kubernetes' test server, calls. Read
// association.go first.
//
// An association has the handshake, acknowledged data, retransmission, and an orderly end (RFC 9260). It has
// one stream, one address at each end, and one single-packet message at a time, without congestion control. A
// packet for a port without a server is not answered, because another program may own that port.
//
// # Concurrency
//
// Listeners and connections are safe for concurrent use.
//
// # Errors
//
// Dialing retransmits until the connection is closed; callers need their own timeout.
package sctp
