// Package knft implements sigs.k8s.io/knftables.Interface (v0.0.22) over weft's socket. A program that uses
// knftables publishes through weft after one changed call:
//
//	nft, err := knftables.New(knftables.IPv4Family, "agent")
//
// becomes
//
//	c, err := client.Dial(ctx, client.Config{Publisher: "agent"})
//	nft, err := knft.New(c, knft.Config{Family: knftables.IPv4Family, Table: "agent"})
//
// An Adapter is one fragment. It applies the nft(8) text of a transaction to the last published content, and
// sends the difference as one atomic update.
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
// with all fields of the objects. Rule text must compile in weft. Check uses the aggregator's Plan.
//
// The List methods return the merged state of the table, including other publishers' content.
//
// knftables.IsNotFound and IsAlreadyExists hold as with nft(8): for missing objects and second creations,
// for contradicting declarations, and for references of rules and verdicts to a chain, set or map that does
// not exist at this place in the transaction. A reference to a missing named object is a
// *client.RejectedError. A transaction returns its first error.
//
// # Unsupported operations
//
// These return ErrUnsupported before sending: reset of counters, counters of elements, table flags
// (dormant), and delete or destroy by Handle of a table, chain, set, map, counter or flowtable.
//
// An adapter changes only its own fragment. It can add rules or elements to another fragment's chain or
// set, and thereby joins it. To delete or replace another fragment's rule, element or object is ErrForeign.
// Deleting or flushing the table removes only this fragment's part.
//
// # Differences
//
//   - Only the end of a transaction must be consistent: a chain may be deleted before the last rule that
//     jumps to it. A rule cannot be placed next to a rule deleted by the same transaction.
//   - Objects that one transaction deletes or flushes and adds again are kept: a rule keeps its handle and
//     counters, a table its comment, an element its remaining timeout.
//   - Destroy needs no support by nft or the kernel, and the options of knftables.New have no meaning.
//   - Elements that packets have put into a dynamic set are neither listed nor deleted. Ranges are listed
//     as "from-to".
//   - A rule may have line breaks only inside of braces.
//
// # Restarts
//
// After a restart of the program the adapter reads its fragment back. After a restart of the aggregator the
// session sends it again. After both, the rules of a fragment with the default lifetime have no known text:
// see ErrAdopted.
//
// # Concurrency
//
// An Adapter is safe for concurrent use; transactions run one after the other. Several Adapters of a
// fragment may take turns. Close unused Adapters, because their sessions send their last content again when
// the aggregator restarts.
//
// # Errors
//
// Errors are in errors.go, match knftables.IsNotFound or IsAlreadyExists, or come from package client, such as
// a *client.RejectedError with every violation.
package knft
