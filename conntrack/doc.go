// Package conntrack removes UDP flows invalidated by a change of the ruleset from the kernel's
// connection tracking table. It also lists and deletes entries for callers.
//
// The kernel routes a flow by its first packet; later packets follow the flow's entry. A client
// sending from one UDP port keeps the entry alive, and its packets go to a backend that may no
// longer exist. After the entry is removed, the new rules handle the next packet.
//
// In: the changed destinations ([Conn.Flush]), or all destinations with their backends
// ([Conn.Reconcile]). Out: deletions of entries, and their number. [Conn.Watch] reports new local
// addresses. Read conntrack.go first, then match.go, sweep.go and local.go.
//
// The package does not know Services or policies, and does not log.
//
// # Cost
//
// Reconcile makes one pass over the table for each family of destinations, Flush at most two. In a
// pass the kernel walks all entries: 50 ms for 200,000 flows on the development machine.
//
// A filter limits the entries sent by the kernel. It has one condition for each field, so it
// contains only values common to all flows to remove. Without common values, every UDP flow of the
// family is read. Flows are read as a stream, so memory does not depend on the table's size.
//
// How kernels interpret the filter (CTA_FILTER, net/netfilter/nf_conntrack_netlink.c):
//
//	before 5.8       ignored: all flows of the family are read
//	5.8              protocol and destination; the kernel misreads the reply's tuple,
//	                 so the filter omits it
//	5.15.194, 6.1    protocol, destination and backend
//	6.18             the same; for IPv6 all versions support only protocol and ports
//
// The package checks the same conditions, so a kernel that filters less costs only time. CTA_STATUS
// is not used: a flow to a backend with the address and port of the Service is not translated
// either.
//
// # Concurrency
//
// A Conn works in the network namespace of the thread that opened it. Its methods may be called
// from several goroutines. Methods that read the table exclude each other. Delete excludes only
// other deletions.
//
// # Errors
//
// An empty table, a kernel without nf_conntrack loaded, and an entry that disappears before it is
// deleted are not errors. An interrupted dump is repeated at most four times.
package conntrack
