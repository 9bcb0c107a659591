// Package planner derives kernel operations from a state.
//
// [Make] returns the operations since the last [Accept], [Diff] the repair of a dump. [Stage]
// selects new sets for the kernel before their update. Consequences for flows are in stale.go, for
// affinity maps in purge.go.
//
// The package does no I/O. A plan costs the changes, a Diff the dump.
package planner
