// Package conntrack removes UDP flows from the kernel's connection tracking
// table that a change of the ruleset made invalid, and lists and deletes entries for
// callers who judge them by themselves.
//
// The kernel decides where a flow goes once, for its first packet; every later
// packet follows the flow's entry. UDP has no end of connection, so a client
// that keeps sending from one port keeps the entry alive, and its packets go
// to a backend that may no longer exist. After the entry is removed, the next packet
// is handled by the new rules.
//
// What comes in are the changed destinations ([Conn.Flush]), or all destinations with
// their backends ([Conn.Reconcile]). What goes out are deletions of entries, and their
// number. Read conntrack.go first, then match.go, which decides about a flow,
// sweep.go, which reads the table, and local.go, which knows the local addresses. Addresses come in ([Conn.List]) and entries go out, of
// which the caller passes some to [Conn.Delete]: list.go, entry.go and identity.go.
//
// The package does not know Services or policies. Flush and Reconcile never remove flows of
// TCP or of any other protocol than UDP, and nothing logs. A NodePort has no address. Its flows are those
// that were translated to its backends, and, if they were not translated, those to an address that is local
// at the time of the call. Other flows to the same port of another host are not removed. [Conn.Watch] says
// when an address becomes local.
//
// # Cost
//
// A call makes one pass over the table for each family of its destinations, however many
// backends were removed, and none if there are no destinations. In a pass the kernel walks
// all entries, including those of TCP and of other namespaces. That is the lower bound:
// 50 ms for 200,000 flows on the development machine. A filter limits the entries that
// the kernel sends. It has one condition for each field, so it contains what all flows
// to remove have in common: always the protocol; address and port of the destination;
// and address and port of the backend, unless flows that were not translated are
// included. One removed backend, or one destination, is read alone. If several of both
// have nothing in common, every UDP flow of the family is read, which takes 5 times the
// lower bound if half of the flows are UDP. That is less than a walk for each if there are
// more than five. Entries are removed 64 at a time. Flows are read as a stream, so the
// memory of a pass does not depend on the size of the table.
//
// A listing of up to four IPv4 addresses makes two passes for each, one for the source and
// one for the reply's source. Other listings make one pass in which the kernel sends
// every entry of the families, which takes about as long as ten passes in which it sends few.
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
// The package checks the same conditions, so a kernel that filters less costs only time.
// It is not known which version between 5.8 and 5.15.194 is the first to read the reply's
// tuple. The kernel can also filter by CTA_STATUS, which is not used: it could omit flows
// that were not translated, and flows to a backend with the address and port of its
// Service are not translated either.
//
// Entries are decoded by a hand-written decoder that does not allocate. With the decoder
// of github.com/mdlayher/netlink, which copies every attribute, BenchmarkFlush200k took
// twice as long where all UDP flows are read: 1,200 ms instead of 600 ms for 100,000 flows.
//
// # Concurrency
//
// A Conn works in the network namespace of the thread that opened it. Its
// methods may be called from several goroutines. Those that read the table exclude each
// other, for a List as long as its function takes; Delete excludes only other deletions, for
// the time of 64 entries. A caller whose function may wait uses a Conn of its own.
//
// # Errors
//
// The following are not errors: an empty table, a kernel that has not loaded
// nf_conntrack, and an entry that disappears before it is deleted. A dump that
// the kernel reports as interrupted is repeated at most four times; a List then calls its
// function again with the same entries. If CAP_NET_ADMIN is
// missing, [Open] returns an error that wraps [os.ErrPermission].
package conntrack
