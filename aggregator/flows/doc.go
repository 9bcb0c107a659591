// Package flows removes conntrack entries and affinity entries left by the old rules after a commit. Stale
// destinations and maps come in; calls of conntrack and the kernel go out.
//
// [Flusher] removes UDP conntrack entries that lead to removed backends, and [Purger] entries of affinity
// maps without a rule. Package desired decides which entries are stale. TCP stays. Read flusher.go first.
//
// # Notes
//
// A comparison of all flows with the ruleset misses flows to removed destinations. So before a commit a
// Flusher saves the destinations that lose their last backend (Config.Save). If the process is killed
// before their flows are removed, the next one removes the flows.
//
// # Concurrency
//
// A Flusher is safe for concurrent use. The methods of a Purger belong to the goroutine that owns the
// kernel, except Run.
//
// # Errors
//
// Errors are counted and logged, and the removal is retried (package retry). They never fail an update.
package flows
