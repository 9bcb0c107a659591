// Package flows removes stale kernel state outside of the ruleset after a commit: UDP conntrack entries
// that lead to removed backends, and entries of affinity maps without a rule. Stale changes come in; calls
// of conntrack and the kernel go out. Read flusher.go first.
//
// [Flusher] removes conntrack entries, and [Purger] entries of affinity maps. Both work after the commit
// and never delay the next one.
//
// Package desired decides which entries are stale, from a commit or an address that becomes local. This
// package does not touch TCP.
//
// # Notes
//
// A comparison of all flows with the ruleset misses flows to removed destinations. So before a commit a
// Flusher saves the destinations that lose their last backend (see Config.Save), and forgets them once
// their flows are removed. If the process is killed in between, the next one removes the flows. Without
// Config.Save the destinations are only kept in memory, to retry failed removals. Saving a list blocks only
// the commit of this list.
//
// # Concurrency
//
// A Flusher is safe for concurrent use. It works on the goroutine that calls Run. The methods of a Purger
// belong to the goroutine that owns the kernel, except Run, which reads maps on its own goroutine.
//
// # Errors
//
// Errors are counted and logged, and the removal is retried. They never fail an update.
package flows
