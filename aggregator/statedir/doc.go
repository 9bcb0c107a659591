// Package statedir stores state outside the kernel for the next start of the aggregator: durable
// fragments, the record of declarations, and the destinations with flows to remove.
//
// Its input is an [Update] for each committed update of a durable fragment, and a changed [Record]
// before its commit. Package store has files, damage and versions.
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
//	  flows  JSON of []conntrack.Stale
//	fragments
//	  PUBLISHER/NAME
//	    configured  if the publisher was in the configuration
//	    ...         the entries of the fragment (package entries)
//	staged
//	  PUBLISHER/NAME  a snapshot that is being stored; the next start forgets it
//
// Numbers are big-endian. Writes touch only changed entries and shares.
//
// # Durability
//
// A change is answered once it is stored. A snapshot of more than 8,192 entries takes several
// transactions; Load sees it after the last. Failed changes stay queued (package retry): every new
// change that waits for an answer tries again, too.
//
// The stored revision is up to 10,000 ahead of the last commit, so that no start uses a revision
// twice. If the directory cannot be written, only the clock is left (package aggregator).
//
// # Concurrency
//
// Load comes first. Then any goroutine may use Store, Failing, Room and SaveFlows. SaveRecord,
// ReserveRevision and RemoveRecord belong to the writer, which waits for the disk only there.
//
// # Errors
//
// Errors of methods other than Load name the failed operation.
package statedir
