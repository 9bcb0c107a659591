// Package store keeps the state directory: one bbolt database.
//
// The packages statedir, history and unconfirmed register [Part]s and tasks (package retry).
// [Store.Update] waits for the disk; a task ([Store.NewTask]) writes later.
//
// # Files
//
//	state.db                          the database
//	state.db.outdated                 the same, after the record could not be stored
//	*.damaged, *.damaged-N           damaged files that were renamed, at most ten of a name
//	*.other-format, *.other-format-N files that another version of weft wrote, renamed
//
// A rename marks an outdated record even on a full disk.
//
// Each Part has a bucket. The bucket "state" has the version of the format with a checksum, and the
// boot ID while a process uses the directory. A new part, or another meaning of keys and values,
// needs a new version.
//
// # Damage
//
// bbolt has no checksums of data. Each bucket stores the sum of the checksums (part, bucket, key,
// value) of the entries, with inner buckets. Panics and faults from damaged pages match [ErrDamaged].
//
// A start copies the whole database and checks it on the way: damage to pages such as the list of
// free pages would spread with the next write. The copy lacks damaged parts; their loss is logged
// and counted, and the damaged file is renamed. Damage found later fails transactions until the
// next start.
//
// # Durability
//
// Each transaction is synced. If the directory cannot be written, Load copies the database to
// memory, and each write tries again to create the file.
//
// # Concurrency
//
// Register and NewTask come before Load, Load before other methods. Then any goroutine may call all
// methods. Writers wait for each other; a writer waits for at most one transaction of each task.
// Readers do not delay writers.
//
// # Errors
//
// They are in store.go.
package store
