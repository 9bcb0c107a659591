// Package merge holds the state. A part is a chain, a set or map, a named object or a flowtable of
// a table. A share is a fragment's declaration and content of a part. A holding is all shares of a
// fragment in a table.
//
// [State.Apply] merges or rejects an update as a whole. A journal undoes all changes since the last
// Accept (state.go).
//
// A write of a share also updates what follows from the shares: usage (charge.go), prices of paths
// (reach.go, hook.go), backends of watched flows (flows.go), Scope and Record (observed.go). The
// inverse write takes it back. Deadlines (deadline.go) are in the journal instead.
//
// Package desired describes concurrency and errors.
package merge
