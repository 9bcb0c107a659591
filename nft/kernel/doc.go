// Package kernel writes nftables rulesets to the kernel and reads them back.
// It is the only package that opens NETLINK_NETFILTER for nftables.
//
// What comes in are Ops on tables, chains, rules, sets, elements, objects and
// flowtables, in the compiled form of packages set, object and compile. Conn.Commit sends
// them as one netlink batch with one system call: either all of them take effect, or none
// does. What goes out are the tables that weft created (Conn.Dump, Conn.Adopt), the
// changes that other processes make to them (Conn.Watch), and the steps of traced packets
// (Conn.Trace). Read op.go and commit.go first, then encoder.go and dump.go.
//
// Weft's tables carry a mark, a record in their userdata (package userdata). A foreign
// table is one without the mark: weft did not create it. The package refuses to change
// foreign tables, and to read their contents: if a foreign table of the same name exists,
// creating a table fails (ErrForeignTable). Survey and RemoveForeign are exceptions, for an
// operator who replaces another program by weft. So is Reader, for programs that explain what
// all rules of a node do together. DumpSet does not check the mark: the
// caller must name one of weft's tables. The package has no desired state and does not
// log. It does not retry a batch that the kernel rejected, except as described under
// Ownership.
//
// # Ownership
//
// From Linux 6.9 on, tables are created with NFT_TABLE_F_OWNER and
// NFT_TABLE_F_PERSIST: while the Conn's socket is open, no other process can
// change or flush them. When the socket and all copies of it (Conn.File) are closed they remain
// without an owner until the next Conn adopts them. A Conn can go on with a copy (Config.Inherit). On older kernels (Conn.Owner returns false) every batch
// carries the generation of the ruleset that the Conn knows (NFNL_BATCH_GENID), so that
// the kernel rejects it if another process changed the ruleset. The Conn then checks
// that its tables still exist and sends the batch again. Batches on owned tables do not
// carry the generation: the network namespace has only one, so every change by iptables
// would make them fail.
//
// # Expiring elements
//
// An element with a timeout can expire before it is deleted. From Linux 6.3 on, elements
// of sets with the timeout flag are therefore deleted with NFT_MSG_DESTROYSETELEM, which
// ignores missing elements. On older kernels the deletion fails with ENOENT and the batch
// is rejected; the caller has to Dump and compare. In all other sets a missing element is
// an error.
//
// # Objects and rules
//
// Named objects must be added before anything refers to them, and deleted afterwards.
// The Text of a dumped object contains its counts. The kinds of objects are defined in
// package object; this package only transfers their encoded data.
//
// Except by Reader, of the expressions of a dumped rule only the elements that packets add to maps are read
// (compile.ParseWrites). The fingerprint in the rule's userdata identifies the rest.
//
// # Libraries
//
// Batches are encoded here and not by github.com/google/nftables, because that package
// always sends table flags of 0, so tables cannot be owned or dormant, and because it does
// not report which message of a batch the kernel rejected. Sockets are opened by
// github.com/mdlayher/socket. Sending and receiving use its file descriptor
// directly, because a batch needs one sendto and must not be copied, and because the
// answers to a batch are read without blocking.
//
// # Concurrency
//
// A Conn may be used by several goroutines. Commit, Check, Dump, Adopt, Generation, Survey
// and RemoveForeign exclude each other. Watch, Trace, DumpSet and DumpLive have sockets of their
// own, so commits do not wait for them. Close does not wait for other calls; those that use
// the connection's socket then fail.
//
// # Errors
//
// If the kernel or the encoder rejects a batch, the error is a *BatchError that names
// the Op, and the element if the kernel points at one. If the socket fails so that the
// outcome is not known, the error wraps ErrUnknownOutcome; the caller has to Dump and
// compare. ErrPermission says that a capability is missing, *OwnedError that another
// process owns the table.
package kernel
