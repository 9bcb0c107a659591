// Package desired merges the fragments of all publishers and plans the kernel
// operations that commit the result. Compiled updates come in; an ordered list of
// operations goes out. Rules and elements that stay are not in it. Read types.go,
// then apply.go and plan.go.
//
// [State.Apply] checks one update of one fragment against everything that other
// fragments hold, and merges or rejects it as a whole. [State.Plan] returns the
// operations since the last [State.Accept]. Accept says that the kernel has carried
// them out; [State.Rollback] says that it has not, and undoes every Apply since.
// All of them cost what the updates touch, whatever else exists.
//
// A State is the only record of who declares what: content, declarations as they
// were written, priority, lifetime and session of every fragment. One journal
// undoes all of it.
//
// The merge is a pure function of the accepted fragments. In each object the
// fragments come in order of (priority, publisher, name). In a chain their rules
// follow each other, with the rules of each fragment kept together. In a map the
// first fragment that has a key decides on its value, and the values of the others
// are shadowed until it is gone. A set with auto-merge is the union of the intervals of
// all shares (automerge.go); a change costs what lies around it. Declarations must agree,
// and references must resolve within the table. An update that would break that is
// rejected, and the violation names the other fragment.
//
// # Staging
//
// [State.Stage] selects the new sets and maps of a large update that the kernel can have
// before it (stage.go). They belong to no fragment until the update is applied and accepted:
// a [Record] and a [Scope] do not have them. A Plan that needs one of their names for
// something else removes it.
//
// # Restart
//
// [State.Adopt] starts from what the kernel holds. Rules name the fragment that
// they belong to; for elements a [Record] says which fragments have a share in a
// set. A fragment that has not come back is adopted: it keeps what the kernel has
// of it until its snapshot replaces it or it is withdrawn. Content without a
// fragment is unclaimed, and stays until [State.DropUnclaimed].
//
// # Elements from packets
//
// Elements that packets have put into dynamic sets are in no plan and no diff. For
// affinity maps the state counts the rules that make entries of each value, at the
// cost of the rules that change. [Plan.Purges] names the maps in which the last rule
// of a value goes, [State.Unpurged] the maps with entries to remove in a dump, and
// [State.Leftovers] selects the entries to remove. The caller removes them after the
// commit, because they are not known before. A rule that takes the value from the
// packet makes any entry. Entries that a fragment states itself stay. A map whose
// declaration changes is made anew and loses its entries.
//
// # Memory
//
// The elements of a share are packed into tables without pointers (elements.go):
// key and data as they are, and eight bytes more. Comments and timeouts, which
// elements rarely have, are stored separately. Elements are unpacked when they are
// asked for; those of updates are forgotten at Accept. BenchmarkHeap prints the
// bytes per element.
//
// # Limits of this package
//
// The package does no I/O, reads no clock and starts no goroutine. It does not
// parse: rules, declarations and elements arrive compiled. It does not look for
// loops of jumps or for overlapping intervals. The kernel does, and the caller
// attributes its answer with [Plan.Origin].
//
// # Concurrency
//
// A State belongs to one goroutine. A [Scope] is immutable and may be used from
// any.
//
// # Errors
//
// Apply returns a *[Rejection] if the update itself is wrong, and an error that
// wraps [ErrStale] if it was compiled against declarations that have changed
// since: compile it again and try again. After any error the state is as it was
// before the call.
package desired
