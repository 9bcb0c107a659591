// Package desired has the types of the packages below it: updates, places, violations, plans,
// records and statuses.
//
//	Update, admitted and compiled
//	   | merge.State.Apply      checks it against other fragments; a journal can undo it
//	   v
//	merge.State
//	   | planner.Make           derives Plan: operations, stale flows, purges
//	   v
//	Plan, which the caller (the writer of package aggregator) commits
//	   | planner.Accept         the kernel has it: the state is the kernel's now
//	   | State.Rollback         the kernel refused it: every change since Accept is undone
//	   v
//	views                       status, content, owners and the Record to store
//
// After a restart adopt makes the state from a dump and a Record. Imports go one way: planner,
// adopt, merge, desired, packed. views uses merge; planner and merge use backends. Package merge
// defines part, share and holding.
//
// # The merge
//
// The merge is a pure function of the accepted fragments, in order of (priority, publisher, name).
// A chain has the rules of all. In a map the first fragment with a key decides on its value; others
// are shadowed. A set is the union of all; auto-merge also joins intervals. Declarations must
// agree, and references must resolve within the table.
//
// Elements that packets add are in no plan. The entries of an affinity map belong to rules:
// Plan.Purges names a map that lost the last rule for a value.
//
// # Limits
//
// These packages do no I/O, read no clock and start no goroutine. Only the kernel checks for loops
// of jumps and overlapping intervals; Plan.Origin attributes its error to an update.
//
// # Concurrency
//
// A State belongs to one goroutine. Scopes and views may be used from any.
//
// # Errors
//
// Apply returns a *[Rejection] for an invalid update, and wraps [ErrStale] for an outdated one.
// After any error the state is as before the call.
package desired
