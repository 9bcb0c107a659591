// Package planner derives kernel operations (ops) from a state.
//
// [Make] returns the ops from the last accepted state to the present one, [Diff] the ops from a
// dump. [Stage] selects new sets that the kernel gets before their update. Consequences for flows
// are in stale.go, for affinity maps in purge.go.
//
// The package does no I/O. A plan costs the changes, a Diff the dump.
package planner
