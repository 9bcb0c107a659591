// Package flows removes what a commit leaves behind in the kernel outside of the
// ruleset: UDP conntrack entries that lead to backends that are gone, and entries
// of affinity maps that no rule makes any more. What a commit made stale comes in;
// calls of conntrack and of the kernel go out. Read flusher.go first.
//
// [Flusher] removes conntrack entries, and [Purger] entries of affinity maps.
// Both work after the commit and never delay the next one.
//
// The package does not decide which entries are stale: package desired derives
// that from the change, which is a commit or an address that becomes local. It does not touch TCP.
//
// # Notes
//
// A comparison of all flows with the present ruleset finds no flows to a
// destination that is gone. So a Flusher stores the destinations that a commit
// leaves without a backend before the commit (see Config.Save), and forgets them once
// their flows are removed. A process that is killed in between leaves them to the
// next one. Without Config.Save the destinations are kept in memory, so that a removal that fails is tried again.
// Nothing that a commit waits for is locked while a list is saved, but for the list of the commit itself.
//
// # Concurrency
//
// A Flusher is safe for concurrent use. It works on the goroutine that calls
// Run. The methods of a Purger belong to the goroutine that owns the kernel, except
// for Run, which reads maps on a goroutine of its own.
//
// # Errors
//
// Errors are counted and logged, and the removal is retried: no update fails
// because of them.
package flows
