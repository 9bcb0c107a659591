// Package conntrack removes UDP flows invalidated by a change of the ruleset from the kernel's
// connection tracking table. It also lists and deletes entries for callers.
//
// The kernel routes a flow by its first packet; later packets follow the flow's entry. UDP has no
// end of connection, so a client sending from one port keeps the entry alive, and its
// packets go to a backend that may no longer exist. After the entry is removed, the new rules
// handle the next packet.
//
// In: the changed destinations ([Conn.Flush]), or all destinations with their backends
// ([Conn.Reconcile]). Out: deletions of entries, and their number. Read conntrack.go first, then
// match.go, which decides about a flow, sweep.go, which reads the table, and local.go for local
// addresses. list.go, entry.go and identity.go list entries by address ([Conn.List]) and delete
// entries ([Conn.Delete]).
//
// The package does not know Services or policies, and does not log. Flush and Reconcile remove only
// UDP flows. A NodePort has no address. Its flows are the flows translated to its backends, and
// untranslated flows to addresses that are local at the time of the call. [Conn.Watch] reports new
// local addresses.
//
// # Cost
//
// A call makes one pass over the table for each family of destinations, for any number of
// removed backends, and no pass without destinations. In a pass the kernel walks all entries,
// including TCP and other namespaces. This is the lower bound: 50 ms for 200,000 flows on the
// development machine.
//
// A filter limits the entries sent by the kernel. It has one condition for each field, so it
// contains only values common to all flows to remove: always the protocol; address and port of the
// destination; and address and port of the backend, unless untranslated flows are included. A
// single removed backend or destination is read alone. Without common values, every UDP flow of the
// family is read, which takes 5 times the lower bound if half of the flows are UDP: less than
// separate walks for more than five. Entries are removed 64 at a time. Flows are read as a stream,
// so memory does not depend on the table's size.
//
// A listing of up to four IPv4 addresses makes two passes for each, for the source and the reply's
// source. Other listings make one pass with every entry of the families, which takes about as long
// as ten passes with few entries.
//
// How kernels interpret the filter (CTA_FILTER, net/netfilter/nf_conntrack_netlink.c):
//
//	before 5.8       ignored: all flows of the family are read
//	5.8              protocol and destination; the kernel misreads the reply's tuple,
//	                 which Open detects, so the filter omits it
//	5.15.194, 6.1    protocol, destination and backend
//	6.18             the same. For IPv6 all versions support only protocol and ports,
//	                 because they take equal addresses for different ones
//
// The package checks the same conditions, so a kernel that filters less costs only time. The first
// version after 5.8 that reads the reply's tuple is not known; 5.15.194 does. CTA_STATUS is not
// used: it could omit untranslated flows, but flows to a backend with the address and port of its
// Service are not translated either.
//
// The decoder of entries does not allocate. With the decoder of github.com/mdlayher/netlink, which
// copies every attribute, BenchmarkFlush200k took twice as long if all UDP flows are read: 1,200 ms
// instead of 600 ms for 100,000 flows.
//
// # Concurrency
//
// A Conn works in the network namespace of the thread that opened it. Its methods may be called
// from several goroutines. Methods that read the table exclude each other, a List as long as its
// function takes. Delete excludes only other deletions, for 64 entries at a time. A caller with a
// function that may wait uses a separate Conn.
//
// # Errors
//
// An empty table, a kernel without nf_conntrack loaded, and an entry that disappears before it is
// deleted are not errors. An interrupted dump is repeated at most four times; a List then calls its
// function again with the same entries. If CAP_NET_ADMIN is missing, [Open] returns an error
// wrapping [os.ErrPermission].
package conntrack
