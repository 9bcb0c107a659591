// Package knft implements sigs.k8s.io/knftables.Interface (v0.0.22) over weft's
// socket: a program that is written for knftables publishes through weft, next
// to other publishers, by changing the call that makes its Interface.
//
//	nft, err := knftables.New(knftables.IPv4Family, "agent")
//
// becomes
//
//	c, err := client.Dial(ctx, client.Config{Publisher: "agent"})
//	nft, err := knft.New(c, knft.Config{Family: knftables.IPv4Family, Table: "agent"})
//
// An Adapter is one fragment, named after its family and table. A transaction
// is read in the text that knftables writes for nft(8), applied to the content
// that the adapter last published, and sent as one update of what differs: a
// patch that costs what changed, or a snapshot where tables come or go. It is
// committed whole or not at all.
//
// Unlike package client, this one uses the compiler of nft/compile:
// two spellings of a key are one key, and only the compiler can tell.
//
// # What works
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
// with all fields of the objects: comments, base chains with priorities by name
// or number, types and typeof, flags, timeouts, sizes, policies. Rule text is what
// weft compiles. Check is the aggregator's Plan: it changes nothing, and is refused
// where Run would be.
//
// ListAll, List, ListRules, ListElements and ListCounters answer from the merged
// state of the table, so what other publishers have in it is there too.
// Rule.Rule is empty in what ListRules returns, as it is in knftables.
//
// knftables.IsNotFound and IsAlreadyExists hold where they do with nft(8): for
// objects that do not exist, or are created twice; for declarations that
// contradict what is there; for rules and verdicts that refer to a chain, set or map
// that does not exist at their place in the transaction (a named object that does not
// exist is a *client.RejectedError). Of several errors in one
// transaction the first is reported.
//
// # What is refused
//
// These return ErrUnsupported, before anything is sent: reset of counters,
// counters of elements, table flags (dormant), and delete or destroy of a table, chain,
// set, map, counter or flowtable by Handle, which nothing in knftables tells.
//
// An adapter changes its own fragment alone. To add rules or elements to a chain
// or set that another fragment has declared is possible, and joins it; to delete
// or replace another fragment's rule, element or object is ErrForeign, and names
// the fragment. Deleting or flushing the table gives up this fragment's part of
// it.
//
// # What is different
//
//   - Only the end of a transaction must be consistent: a chain may be deleted
//     before the last rule that jumps to it. A place next to a rule that the same
//     transaction has deleted is not found.
//   - What is deleted or flushed and added again stays as it is: a rule keeps its
//     handle and counters, a table its comment, an element with a timeout what is
//     left of that.
//   - Destroy needs no support by nft or the kernel, and the options of
//     knftables.New have no meaning here.
//   - Elements that packets have put into a dynamic set are neither listed nor
//     deleted. Ranges are listed as "from-to".
//   - A rule may have line breaks inside of braces only.
//
// # Restarts
//
// After a restart of the program the adapter reads its fragment back. After a
// restart of the aggregator under a running program the session resends it. After
// both, the rules of a fragment with the default lifetime are not known in words:
// the first transaction has to begin anew, with a deletion or flush of the table,
// or flush every chain that has rules, as programs do that do not know what an
// earlier version left behind; else it gets ErrAdopted. LIFETIME_DURABLE has no
// such restriction.
//
// # Concurrency
//
// An Adapter is safe for concurrent use; transactions run one after the other.
// Several Adapters of one fragment may take turns: each transaction then begins by
// reading back what the other has made. Close those that are not in use, as the
// session of each resends what it last knew when the aggregator restarts.
//
// # Errors
//
// Beside those in errors.go and knftables' two conditions, errors are those of
// package client: a *client.RejectedError with every violation where the
// aggregator refused, client.ErrUnavailable, and so on. All can be matched with
// errors.Is and errors.As.
package knft
