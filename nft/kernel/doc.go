// Package kernel writes nftables rulesets to the kernel and reads them back.
// It is the only package that opens NETLINK_NETFILTER for nftables.
//
// A Conn commits a list of Ops as one netlink batch in one sendmsg: the kernel
// takes all of it or nothing. It dumps, claims and watches the tables that
// weft created, which carry a mark in their userdata.
//
// The package refuses to touch a table that is not marked as weft's: neither
// its Ops nor its dumps go near one, and a table of a name that exists already
// is an error (ErrForeignTable), never a reason to reuse or replace it. The one exception is
// for an operator who replaces another program by weft: Survey and RemoveForeign. It
// keeps no desired state, does not log, and sends no batch again that the
// kernel has rejected, but for the guarded ones below.
//
// # Ownership
//
// From Linux 6.9 on, tables are created with NFT_TABLE_F_OWNER and
// NFT_TABLE_F_PERSIST: while the Conn's socket is open no other process can
// change them or flush them away, and when it closes they stay, without an owner, until
// the next Conn claims them. On older kernels (Conn.Owner is false) tables have
// no flags; every batch then carries the ruleset generation that the Conn last
// saw (NFNL_BATCH_GENID), and when another writer was faster the Conn checks
// that its tables are still there before it tries again. Owned tables do without:
// the generation is one per network namespace, and a busy iptables would make
// batches fail for nothing.
//
// # Elements that run out
//
// An element with a timeout may be gone when it is to be deleted, and nobody
// can know in advance. From Linux 6.3 on, elements of sets with the timeout
// flag are therefore deleted with NFT_MSG_DESTROYSETELEM, which does not mind.
// On older kernels such a deletion is ENOENT and rejects its batch: Dump,
// compare, go on. In all other sets a missing element is an error everywhere.
//
// # Objects
//
// Named objects go before what refers to them, and are deleted after it; what they have
// counted is in the Text of a dumped one. The kernel itself sends an event when a quota is
// used up.
//
// # What rules write
//
// Of a dumped rule's expressions one thing is read: into which maps it has packets
// put entries, and of which value (compile.ParseWrites). DumpSet reads one set over a
// socket of its own. The kernel counts its way from the first element for each part of
// a dump, so that 65,536 take it about 0.2 s, and commits must not wait for that.
//
// # Concurrency
//
// A Conn may be used by several goroutines; Commit, Dump, Claim and Generation
// exclude each other. Watch and DumpSet have sockets of their own.
//
// # Errors
//
// A batch that the kernel (or the encoder) rejects is a *BatchError that names
// the Op, and the element where the kernel points at one; nothing of the batch
// took effect. When the socket itself failed, so that nobody knows whether the
// batch took effect, the error wraps ErrUnknownOutcome: Dump, compare, go on.
// A missing capability is ErrPermission, a table in other hands *OwnedError.
package kernel
