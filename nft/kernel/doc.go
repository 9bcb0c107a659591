// Package kernel writes nftables rulesets to the kernel and reads them back. It is the only package
// that opens NETLINK_NETFILTER for nftables.
//
// In: Ops with rules, sets and objects from packages compile, set and object; Conn.Commit sends
// them as one netlink batch. Out: weft's tables (Conn.Dump, Conn.Adopt), their changes by other
// processes (Conn.Watch), and the steps of traced packets (Conn.Trace). Read op.go and commit.go
// first, then encoder.go and dump.go.
//
// Weft's tables carry a mark in their userdata; others are foreign. The package refuses to change
// or read foreign tables, except for Tables, Survey, RemoveForeign, Trace and Reader. It has no
// desired state and does not log.
//
// # Ownership
//
// From Linux 6.9 on, tables are created with NFT_TABLE_F_OWNER and NFT_TABLE_F_PERSIST: while the
// socket or a copy (Conn.File) is open, other processes cannot change or flush them. Later the
// tables remain without an owner until a Conn adopts them. A Conn can continue with a copy
// (Config.Inherit).
//
// If a table of the Conn has no owner, as on older kernels, every batch carries the ruleset's
// generation (NFNL_BATCH_GENID), and the kernel rejects it after a change by another process. Other
// batches carry no generation, because every change by iptables would make them fail.
//
// # Libraries
//
// Batches are encoded here because github.com/google/nftables always sends table flags of 0 and
// does not report the rejected message of a batch.
//
// # Concurrency
//
// A Conn may be used by several goroutines. Calls on the connection's socket exclude each other;
// Watch, Trace, DumpSet and DumpLive have sockets of their own. Close does not wait for pending
// calls, which then fail.
//
// # Errors
//
// A rejected batch is a *BatchError with the Op, and the element if the kernel points at one. If
// the socket failed, the error wraps ErrUnknownOutcome; the caller has to Dump and compare.
package kernel
