// Package kernel writes nftables rulesets to the kernel and reads them back. It is the only package
// that opens NETLINK_NETFILTER for nftables.
//
// In: Ops on tables, chains, rules, sets, elements, objects and flowtables, in the compiled form of
// packages set, object and compile. Conn.Commit sends them as one netlink batch with one system
// call: either all take effect, or none does. Out: the tables created by weft (Conn.Dump,
// Conn.Adopt), changes to them by other processes (Conn.Watch), and the steps of traced packets
// (Conn.Trace). Read op.go and commit.go first, then encoder.go and dump.go.
//
// Weft's tables carry a mark, a record in their userdata (package userdata). Tables without the
// mark are foreign. The package refuses to change foreign tables or read their contents, and
// creating a table with the name of a foreign one fails (ErrForeignTable). Exceptions are Survey
// and RemoveForeign, for an operator who replaces another program by weft, and Reader, for programs
// that explain all rules of a node. DumpSet and DumpLive return ENOENT for foreign tables. The
// package has no desired state, does not log, and does not retry a rejected batch except as
// described under Ownership.
//
// # Ownership
//
// From Linux 6.9 on, tables are created with NFT_TABLE_F_OWNER and NFT_TABLE_F_PERSIST: while the
// Conn's socket is open, other processes cannot change or flush them. After the socket and all its
// copies (Conn.File) are closed, the tables remain without an owner until the next Conn adopts
// them. A Conn can continue with a copy (Config.Inherit).
//
// On older kernels (Conn.Owner returns false) every batch carries the generation of the ruleset
// that the Conn knows (NFNL_BATCH_GENID). The kernel rejects the batch if another process changed
// the ruleset; the Conn then checks that its tables still exist and sends the batch again. Batches
// on owned tables carry no generation: the network namespace has only one, so every change by
// iptables would make them fail.
//
// # Expiring elements
//
// An element with a timeout can expire before it is deleted. From Linux 6.3 on, elements of sets
// with the timeout flag are therefore deleted with NFT_MSG_DESTROYSETELEM, which ignores missing
// elements. On older kernels they are added before they are deleted. In all other sets a missing
// element is an error.
//
// # Objects and rules
//
// Named objects must be added before their references, and deleted after them. The Text of a dumped
// object contains its counts. Package object defines the kinds of objects; this package only
// transfers their encoded data.
//
// From the expressions of a dumped rule, only Reader decodes more than the elements that packets
// add to maps (compile.ParseWrites). The fingerprint in the rule's userdata identifies the rest.
//
// # Libraries
//
// Batches are encoded here because github.com/google/nftables always sends table flags of 0, so
// tables cannot be owned or dormant, and does not report which message of a batch the kernel
// rejected. github.com/mdlayher/socket opens sockets. Sending and receiving use its file descriptor
// directly, because a batch needs one sendto without a copy, and its answers are read without
// blocking.
//
// # Concurrency
//
// A Conn may be used by several goroutines. Commit, Check, Dump, Adopt, Generation, Survey and
// RemoveForeign exclude each other. Watch, Trace, DumpSet and DumpLive have sockets of their own,
// so commits do not wait for them. Close does not wait for other calls; calls that use the
// connection's socket then fail.
//
// # Errors
//
// If the kernel or the encoder rejects a batch, the error is a *BatchError with the Op, and the
// element if the kernel points at one. If the socket fails and the outcome is not known, the error
// wraps ErrUnknownOutcome; the caller has to Dump and compare. ErrPermission means a missing
// capability, *OwnedError a table owned by another process.
package kernel
