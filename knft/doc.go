// Package knft implements sigs.k8s.io/knftables.Interface (v0.0.22) over weft's socket. A program that uses
// knftables publishes through weft, next to other publishers, after a change of one call:
//
//	nft, err := knftables.New(knftables.IPv4Family, "agent")
//
// becomes
//
//	c, err := client.Dial(ctx, client.Config{Publisher: "agent"})
//	nft, err := knft.New(c, knft.Config{Family: knftables.IPv4Family, Table: "agent"})
//
// An Adapter is one fragment, named after its family and table. It parses the nft(8) text of a transaction,
// applies it to the last published content, and sends the difference as one update: a patch, or a snapshot
// if tables come or go. The update is atomic.
//
// Unlike package client, this package uses the compiler (nft/compile), because only the compiler knows that
// two spellings of a key are equal.
//
// # Supported operations
//
// Run and Check take
//
//	add, create        table, chain, set, map, element, counter, flowtable
//	add, insert        rule, at the ends or by Index or Handle
//	replace, delete    rule by Handle
//	delete, destroy    table, chain, set, map, counter, flowtable by name, element by key
//	destroy            rule by Handle
//	flush              table, chain, set, map
//
// with all fields of the objects: comments, base chains with priorities by name or number, types and
// typeof, flags, timeouts, sizes, policies. Rule text is as for weft. Check is the aggregator's Plan: it
// changes nothing, and fails if Run would fail.
//
// ListAll, List, ListRules, ListElements and ListCounters return the merged state of the table, including
// other publishers' content. As in knftables, ListRules leaves Rule.Rule empty.
//
// knftables.IsNotFound and IsAlreadyExists hold as with nft(8): for missing objects and second creations,
// for contradicting declarations, and for references of rules and verdicts to a chain, set or map that does
// not exist at this place in the transaction. A reference to a missing named object is a
// *client.RejectedError. A transaction returns its first error.
//
// # Unsupported operations
//
// These return ErrUnsupported before sending: reset of counters, counters of elements, table flags
// (dormant), and delete or destroy of a table, chain, set, map, counter or flowtable by Handle, which
// knftables never returns.
//
// An adapter changes only its own fragment. It can add rules or elements to another fragment's chain or
// set, and thereby joins it. To delete or replace another fragment's rule, element or object is ErrForeign
// with the name of the fragment. Deleting or flushing the table removes only this fragment's part.
//
// # Differences
//
//   - Only the end of a transaction must be consistent: a chain may be deleted before the last rule that
//     jumps to it. A place next to a rule that the same transaction has deleted is not found.
//   - Objects that are deleted or flushed and added again are kept: a rule keeps its handle and counters, a
//     table its comment, an element its remaining timeout.
//   - Destroy needs no support by nft or the kernel, and the options of knftables.New have no meaning.
//   - Elements that packets have put into a dynamic set are neither listed nor deleted. Ranges are listed
//     as "from-to".
//   - A rule may have line breaks only inside of braces.
//
// # Restarts
//
// After a restart of the program the adapter reads its fragment back. After a restart of the aggregator the
// session sends it again. After both, the rules of a fragment with the default lifetime have no known text.
// The first transaction must then delete or flush the table, or flush every chain with rules, as programs
// do to remove an earlier version's rules. Otherwise it returns ErrAdopted. LIFETIME_DURABLE has no such
// restriction.
//
// # Concurrency
//
// An Adapter is safe for concurrent use; transactions run one after the other. Several Adapters of one
// fragment may take turns: each transaction then first reads back the other's content. Close unused
// Adapters, because the session of each sends its last content again when the aggregator restarts.
//
// # Errors
//
// Other errors are in errors.go, match knftables.IsNotFound or IsAlreadyExists, or come from package
// client: a *client.RejectedError with every violation if the aggregator rejects the update,
// client.ErrUnavailable, and so on. All can be matched with errors.Is and errors.As.
package knft
