// Package planner derives kernel operations from a state and what the kernel has.
//
// [Make] returns the operations since the last [Accept], [Diff] those that repair a dump. [Stage]
// selects new sets that the kernel can have before their update. The consequences for flows
// (stale.go) and affinity maps (purge.go) come with the plan.
//
// The package does no I/O. A plan costs what has changed, a Diff what the dump has.
package planner
