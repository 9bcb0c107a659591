// Package desired holds the merge: the ruleset that all accepted fragments
// ask for together, and the ordered list of kernel operations from what is
// committed to what is desired. Rules and elements that stay are not in it.
//
// [State.Apply] takes one compiled update of one fragment, checks it against
// everything that other fragments hold, and takes it in or rejects it whole.
// [State.Plan] gives the operations since the last [State.Accept];
// [State.Accept] says that the kernel has carried them out, [State.Rollback]
// that it has not, and undoes every Apply since. Both cost what the updates
// touched, never what exists.
//
// The merge is a pure function of the accepted fragments. In each object the
// fragments come in order of (priority, publisher, name): their rules follow
// each other in a chain, each fragment's kept together; the first fragment
// that has a key decides on its value, and the others' values are shadowed
// until it goes. Declarations must agree and references must resolve within
// the table; whichever update would break that is rejected, and the violation
// names the other fragment.
//
// # Restart
//
// [State.Adopt] starts from what the kernel holds. Rules know the fragment
// that they belong to; for elements a [Record] says which fragments have a
// share in a set. A fragment that has not come back is a placeholder: it keeps
// what the kernel has of it until its snapshot replaces it or somebody
// withdraws it. What belongs to nobody is unclaimed and stays until
// [State.DropUnclaimed].
//
// # What packets make
//
// Elements that packets have put into dynamic sets are in no plan and no diff. For
// affinity maps the state counts the rules that make entries of each value, at the
// cost of the rules that change; [Plan.Purges] names the maps in which the last rule
// of a value goes, [State.Unpurged] those with something left over in a dump, and
// [State.Leftovers] judges entries. Removing them is the caller's, after the commit:
// which there are is not known before. A rule that takes the value from the packet
// makes any entry; what a fragment states itself is never left over. A map that is
// declared in another way is made anew, and loses its entries.
//
// # Memory
//
// The elements of a share are packed into tables without pointers (elements.go):
// key and data as they are, and eight bytes more. What elements
// rarely have, comments and timeouts, is beside them. A compile.Element is made of
// one when it is asked for; those of updates are forgotten at Accept.
// BenchmarkHeap prints the bytes per element.
//
// # What it does not do
//
// The package does no I/O, reads no clock and starts no goroutine. It does
// not parse: rules, declarations and elements arrive compiled. It does not
// look for loops of jumps or for overlapping intervals; the kernel does, and
// the caller attributes its answer with [Plan.Origin].
//
// # Concurrency
//
// A State belongs to one goroutine. A [Scope] is immutable and may be used
// from any.
//
// # Errors
//
// Apply returns a *[Rejection] where the update itself is wrong, and an error
// that wraps [ErrStale] where it was compiled against declarations that have
// changed since: compile it again and try again. After any error the state is
// as it was before the call.
package desired
