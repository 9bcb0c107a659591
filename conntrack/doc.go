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
// The cost of a call is one pass over the table for each family that it has to look
// into, however many backends went, and none where it names nothing. The kernel walks
// all entries in a pass, those of TCP and of other namespaces included: that is the
// floor, 50 ms for 200,000 flows on the development machine. Its filter decides what is
// sent to us and checked here. It takes one condition a field, so it has what all that
// is stale shares: the protocol always; address and port of the destination; and
// address and port of the backend, unless flows that were not translated are stale as
// well. One backend that left, or one destination, is so read alone; many of both that
// share nothing have every UDP flow of the family read (5 times the floor where half of
// the flows are of UDP), which is less than a walk for each where there are more than
// five. Entries are removed 64 at a time. Flows are read as a stream, so the memory
// that a pass takes does not grow with the table.
//
// What kernels make of the filter (CTA_FILTER, net/netfilter/nf_conntrack_netlink.c):
//
//	before 5.8       ignored: all flows of the family are read
//	5.8              protocol and destination; the reply's tuple is misread, which
//	                 Open finds out, so it is not asked for
//	5.15.194, 6.1    protocol, destination and backend
//	6.18             as before; of IPv6 only protocol and ports in all of them, as
//	                 equal addresses are taken for different ones
//
// The same conditions are checked here, so a kernel that filters less costs time and
// nothing else. Which version between 5.8 and 5.15.194 reads the reply's tuple first is
// not known; CTA_STATUS, which the kernel also filters by, is not used: it could leave
// out flows that were not translated, and a flow to a backend that has the address and
// port of its Service is not translated either.
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
