// Package desired has the words that everything below it shares: updates and their fragments,
// places and violations, plans, records and statuses. The packages below do the work.
//
//	Update, admitted and compiled
//	   | merge.State.Apply      checks it against other fragments; a journal can undo it
//	   v
//	merge.State
//	   | planner.Make           derives Plan: operations, stale flows, purges
//	   v
//	Plan, which the caller commits
//	   | planner.Accept         the kernel has it: the state is the kernel's now
//	   | State.Rollback         it has not: every change since Accept is undone
//	   v
//	views                       status, content, owners and the Record to store
//
// After a restart adopt makes the state from a dump and a Record. Imports go one way: adopt,
// planner and views use merge; merge uses packed and backends; all use desired.
//
// # The merge
//
// The merge is a pure function of the accepted fragments. In each object the fragments come in
// order of (priority, publisher, name). A chain has the rules of each fragment together. In a map
// the first fragment with a key decides on its value; the other values are shadowed until it goes.
// A set with auto-merge is the union of all shares. Declarations must agree, and references must
// resolve within the table. A violation names the other fragment.
//
// # Staging
//
// planner.Stage selects new sets and maps of a large update that the kernel can have before it.
// They belong to no fragment until the update is applied and accepted.
//
// # Elements from packets
//
// Elements that packets add to dynamic sets are in no plan. Affinity maps are the exception: a plan
// names the maps in which the last rule for a value went, and planner.Leftovers selects the
// entries to remove after the commit. A map whose declaration changes loses its entries.
//
// # Limits of these packages
//
// They do no I/O, read no clock and start no goroutine. Rules, declarations and elements arrive
// compiled. Loops of jumps and overlapping intervals are left to the kernel; Plan.Origin attributes
// its answer to an update.
//
// # Concurrency
//
// A State belongs to one goroutine. Scopes and views may be used from any.
//
// # Errors
//
// Apply returns a *[Rejection] for an invalid update, and an error that wraps [ErrStale] for one
// compiled against declarations that have changed: compile and apply it again. After any error the
// state is as before the call.
package desired
