// Package store has what the files of the state directory have in common: databases of
// bbolt that may be damaged, the content of a fragment in a database, and names that
// change durably. Packages statedir, history and unconfirmed decide what is stored.
//
// Read first: database.go (Open and Guarded), then fragment.go.
//
// # Damage
//
// bbolt has no checksums of data. So a [Fragment] has the sum of the checksums of its
// entries, each with the name of the fragment and the key: a change of a byte and a missing
// entry are noticed. A damaged page makes bbolt panic, or read beyond the file: [Guarded]
// turns both into errors.
//
// # Concurrency
//
// All functions may be called by any goroutine. A Fragment belongs to its transaction.
//
// # Errors
//
// They are in database.go. Match with errors.Is.
package store
