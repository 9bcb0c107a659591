// Package statedir stores what the next start of the aggregator must know and the
// kernel does not tell: the durable fragments, the record of which fragment
// declares what, and the destinations whose flows are still to be removed.
//
// In comes a [Change] for each committed update of a durable fragment, a [Record]
// before each commit that changes one, and the notes of package flows. Out come, at
// the start, the [Contents]. The package does not decide what is stored, knows no
// rules, and does not touch the kernel. Package store has the files, damage and versions.
//
// Read first: statedir.go (Load), then record.go, then durable.go (who waits for what).
//
// # Buckets
//
//	record
//	  revision  8 bytes: no revision above it was used
//	  record    JSON of Record
//	shares
//	  PUBLISHER/NAME FAMILY TABLE   if the record says that the table's shares are apart from it
//	    KIND NAME  JSON of desired.TableRecord with this share
//	flows
//	  flows  JSON of []conntrack.Change
//	fragments
//	  PUBLISHER/NAME
//	    configured  if the publisher was in the configuration
//	    ...         the entries of the fragment (package entries)
//	staged
//	  PUBLISHER/NAME  a snapshot that is being stored
//
// Numbers are big-endian. A patch reads and writes only the entries that it changes, and a commit
// to a large table only the shares that it changes.
//
// # Durability
//
// A change is answered once it is stored, and changes that wait are stored together. A
// snapshot of more than 8,192 entries is stored in several transactions, none of which Load sees
// before the last. After a failure changes stay queued, and are tried again with every new change
// and after the store's Retry.
//
// A revision is never used twice, whatever the clock does: SaveRecord and
// ReserveRevision store a revision some thousand ahead of the commit, and a start
// counts from there. If the directory cannot be written only the clock is left.
//
// # Concurrency
//
// Load comes first. After it, Store, Failing, Room and SaveFlows may be used
// by any goroutine; SaveRecord, ReserveRevision and RemoveRecord belong to the
// writer. Store only queues. The writer waits for the disk only where it stores a record: a
// transaction of others takes milliseconds (a patch that changes 100,000 elements: some hundred).
//
// # Errors
//
// Load fails with store.ErrInUse, and with trusted.ErrUnsafe or trusted.ErrLink if
// another user could change the directory. The errors of other methods name the
// operation that failed.
package statedir
