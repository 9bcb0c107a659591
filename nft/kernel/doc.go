// Package kernel writes nftables rulesets to the kernel and reads them back. It is the only package
// that opens NETLINK_NETFILTER for nftables.
//
// In: Ops on tables, chains, rules, sets, elements, objects and flowtables, compiled by packages
// set, object and compile. Conn.Commit sends them as one netlink batch with one system call: either
// all take effect, or none does. Out: weft's tables (Conn.Dump, Conn.Adopt), their changes by other
// processes (Conn.Watch), and the steps of traced packets (Conn.Trace). Read op.go and commit.go
// first, then encoder.go and dump.go.
//
// Weft's tables carry a mark in their userdata (package userdata); others are foreign. The package
// refuses to change or read foreign tables, or to create a table with a foreign name
// (ErrForeignTable). Exceptions are Survey and RemoveForeign, for an operator who replaces another
// program by weft, and Reader, for programs that explain all rules of a node. DumpSet and DumpLive
// return ENOENT for foreign tables. The package has no desired state, does not log, and retries a
// rejected batch only as described under Ownership.
//
// # Ownership
//
// From Linux 6.9 on, tables are created with NFT_TABLE_F_OWNER and NFT_TABLE_F_PERSIST: while the
// Conn's socket is open, other processes cannot change or flush them. After the socket and all its
// copies (Conn.File) are closed, the tables remain without an owner until a Conn adopts them. A
// Conn can continue with a copy (Config.Inherit).
//
// On older kernels (Conn.Owner returns false) every batch carries the ruleset's generation
// (NFNL_BATCH_GENID), and the kernel rejects it after a change by another process. The Conn then
// checks that its tables still exist and sends the batch again. Batches on owned tables carry no
// generation: the network namespace has only one, so every change by iptables would make them fail.
//
// # Expiring elements
//
// An element with a timeout can expire before it is deleted. From Linux 6.3 on, elements of sets
// with the timeout flag are deleted with NFT_MSG_DESTROYSETELEM, which ignores missing elements. On
// older kernels they are added before they are deleted. In other sets a missing element is an
// error.
//
// # Objects and rules
//
// Named objects must be added before their references, and deleted after them. The Text of a dumped
// object contains its counts. Package object defines the kinds; this package only transfers encoded
// data.
//
// Only Reader decodes all expressions of dumped rules. Otherwise the fingerprint in the userdata
// identifies them, except elements that packets add to maps (compile.ParseWrites).
//
// # Libraries
//
// Batches are encoded here because github.com/google/nftables always sends table flags of 0, so
// tables cannot be owned or dormant, and does not report the rejected message of a batch.
// github.com/mdlayher/socket opens sockets. Its file descriptor is used directly, because a batch
// needs one sendto without a copy, and answers are read without blocking.
//
// # Concurrency
//
// A Conn may be used by several goroutines. Commit, Check, Dump, Adopt, Generation, Survey and
// RemoveForeign exclude each other. Watch, Trace, DumpSet and DumpLive have sockets of their own,
// so commits do not wait for them. Close does not wait; pending calls on the connection's socket
// then fail.
//
// # Errors
//
// A rejected batch is a *BatchError with the Op, and the element if the kernel points at one. If
// the outcome is not known because the socket failed, the error wraps ErrUnknownOutcome; the caller
// has to Dump and compare. ErrPermission means a missing capability, *OwnedError a table owned by
// another process.
package kernel
