// Package store keeps the state directory: one bbolt database, which one goroutine writes.
//
// Packages on top of it decide which keys and values are stored: statedir (the record, durable
// fragments and noted flows), history and unconfirmed. Each registers its [Part]s and [Task]s
// before [Store.Load]. After it they read with [Store.View], write with [Store.Update], which
// waits for the disk, and write later from a Task. The package knows only keys and values.
//
// Read first: store.go (Load and Close), then writer.go (who waits for the disk), then bucket.go
// (transactions and sums), then copy.go (damage).
//
// # Files
//
//	weft.db                          the database
//	weft.db.outdated                 the same, after the record could not be stored
//	*.damaged, *.damaged-N           damaged files that were renamed, at most ten of a name
//	*.other-format, *.other-format-N files that another version of weft wrote, renamed
//
// A rename needs no room on a full disk, so a start does not trust a record that is older than
// the kernel.
//
// The database has a bucket for each Part. The bucket "state" has the version of the format
// (with a checksum), and the boot ID while a process uses the directory. A new part, or another
// meaning of keys and values, needs a new version.
//
// # Damage
//
// bbolt has no checksums of data. So each bucket has the sum of the FNV-1a checksums of its
// entries and of the buckets in it, with the name of the bucket and the key. This finds a changed
// byte, a missing entry, and a bucket with another name. A damaged page makes bbolt panic or
// read beyond the file: both become errors that match [ErrDamaged].
//
// A start checks the whole database and copies it to a new one. Damage to pages that reading does
// not need, such as the list of free pages, would otherwise spread with the next write. The copy
// has no unused pages. It lacks the damaged parts: their loss is logged and counted, and the
// damaged database is renamed. Damage that a running process meets fails its transactions until
// the next start.
//
// A database of another version is renamed too, and so are the files of versions before the
// database: see Load.
//
// # Durability
//
// Each transaction is synced to the disk before it is answered. If the directory cannot be
// written, Load copies the database to memory, and each write tries again to create the file.
//
// # Concurrency
//
// Register and NewTask come before Load, Load before all other methods. After Load all methods
// may be called by any goroutine. A reader has a transaction of its own and does not delay the
// writer.
//
// # Errors
//
// They are in store.go. Match with errors.Is.
package store
