// Package statedir stores for the next start of the aggregator what the kernel does not tell:
// durable fragments, the record of declarations, and the destinations with flows to remove.
//
// In come a [Change] for each committed update of a durable fragment, a [Record] before each commit
// that changes one, and notes of package flows. Load returns the [Contents]. Package store has
// files, damage and versions.
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
// Numbers are big-endian. A patch touches only the entries that it changes, a commit to a large
// table only the changed shares.
//
// # Durability
//
// A change is answered once it is stored; waiting changes are stored together. A snapshot of more
// than 8,192 entries takes several transactions; Load sees it after the last. Failed changes stay
// queued. Every new change and the store's Retry try again.
//
// A revision is never used twice: the stored revision is some thousand ahead of the commit, and a
// start counts from there. If the directory cannot be written only the clock is left.
//
// # Concurrency
//
// Load comes first. After it, any goroutine may use Store, Failing, Room and SaveFlows. SaveRecord,
// ReserveRevision and RemoveRecord belong to the writer, which waits for the disk only in these.
//
// # Errors
//
// Load fails with store.ErrInUse, and with trusted.ErrUnsafe or trusted.ErrLink if another user
// could change the directory. Other errors name the failed operation.
package statedir
