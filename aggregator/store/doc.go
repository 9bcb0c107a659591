// Package store keeps the state directory: one bbolt database, which one goroutine writes.
//
// Packages on top decide about keys and values: statedir (record, durable fragments, noted flows),
// history and unconfirmed. Each registers its [Part]s and [Task]s before [Store.Load]. [Store.View]
// reads, [Store.Update] writes and waits for the disk, a Task writes later.
//
// # Files
//
//	weft.db                          the database
//	weft.db.outdated                 the same, after the record could not be stored
//	*.damaged, *.damaged-N           damaged files that were renamed, at most ten of a name
//	*.other-format, *.other-format-N files that another version of weft wrote, renamed
//
// Names say "outdated" because a rename needs no room on a full disk: no start trusts a record that
// is older than the kernel.
//
// Each Part has a bucket. The bucket "state" has the version of the format with a checksum, and the
// boot ID while a process uses the directory. A new part, or another meaning of keys and values,
// needs a new version.
//
// # Damage
//
// bbolt has no checksums of data. Each bucket stores the sum of the checksums of its entries and of
// the buckets in it. A checksum covers the name of the bucket, the key and the value. Panics and
// faults from damaged pages become errors that match [ErrDamaged].
//
// A start checks the whole database and copies it to a new one: damage to pages that reading does
// not need, such as the list of free pages, would spread with the next write. The copy lacks the
// damaged parts; their loss is logged and counted, and the damaged file is renamed. Damage found
// later fails transactions until the next start.
//
// # Durability
//
// Each transaction is synced before it is answered. If the directory cannot be written, Load copies
// the database to memory, and each write tries again to create the file.
//
// # Concurrency
//
// Register and NewTask come before Load, Load before all other methods. After Load any goroutine
// may call all methods. A reader has its own transaction and does not delay the writer.
//
// # Errors
//
// They are in store.go. Match with errors.Is.
package store
