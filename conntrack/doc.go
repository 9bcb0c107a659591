// Package conntrack removes UDP flows from the kernel's connection tracking
// table that a change of the ruleset has made stale.
//
// The kernel decides where a flow goes once, for its first packet; every later
// packet follows the flow's entry. UDP has no end of connection, so a client
// that keeps sending from one port keeps the entry alive, and its packets go
// to a backend that may be long gone. Removing the entry makes the next packet
// take the new way.
//
// The package decides nothing about Services: [Conn.Flush] and [Conn.Reconcile]
// are told which addresses have lost which backends, and remove flows to these
// and nothing else. It never touches TCP or any other protocol, and it does
// not log.
//
// A NodePort has no address: its flows are those to an address that the namespace's
// interfaces have at the time of the call. A flow to the same port of another host is
// not touched, whatever its backend.
//
// The cost of a call is one pass over the UDP flows of a family, however many
// backends went. The kernel is asked to leave out other protocols, and other
// destinations where all that is stale shares an address or a port
// (CTA_FILTER, Linux 5.8; older kernels ignore it, and the same conditions
// are checked here). Flows are read as a stream, so the memory that a pass
// takes does not grow with the table.
//
// # Concurrency
//
// A Conn belongs to the network namespace of the thread that opened it. Its
// methods can be called from several goroutines; they take turns.
//
// # Errors
//
// A table that is empty, a kernel that has not loaded nf_conntrack, an entry
// that vanishes before it is deleted: none of these is an error. A dump that
// the kernel reports as interrupted is repeated, four times at most. [Open]
// reports a missing CAP_NET_ADMIN as an error that wraps [os.ErrPermission].
package conntrack
