// Package statedir stores what the next start of the aggregator must know and the
// kernel does not tell: the durable fragments, the record of which fragment
// declares what, and the destinations whose flows are still to be removed.
//
// In comes a [Change] for each committed update of a durable fragment, a [Record]
// before each commit that changes one, and the notes of package flows. Out come, at
// the start, the [Contents]. The package does not decide what is stored, knows no
// rules, and does not touch the kernel.
//
// Read first: statedir.go (Load, and what happens to a directory that is damaged or
// cannot be written), then fragment.go (how a fragment becomes entries), then
// queue.go (who waits for what).
//
// # Files
//
//	weft.db           a bbolt database
//	weft.db.outdated  the same, after the record could not be stored
//	running           the boot_id, while a process uses the directory: one that is left was killed
//	*.damaged, *.damaged-N  damaged files that were renamed, at most ten of a name
//
// A rename needs no room on a full disk, so a start does not trust a record that
// is older than the kernel.
//
// # The database
//
//	state
//	  version    "4" with an element that has an expire_time, "3" with "shares", or "2" if a fragment has "configured", "1" otherwise
//	  revision   8 bytes: no revision above it was used
//	  record     JSON of Record
//	  flows      JSON of []conntrack.Change
//	  fragments  8 bytes: the sum of the sums of all fragments
//	fragments
//	  PUBLISHER/NAME
//	    configured                       if the publisher was in the configuration
//	    head                             weft.v1.Fragment without tables
//	    FAMILY TABLE                     weft.v1.Table: comment and flags
//	    FAMILY TABLE chain NAME          weft.v1.Table with this chain
//	    FAMILY TABLE flowtable NAME      weft.v1.Table with this flowtable
//	    FAMILY TABLE object KIND NAME    weft.v1.Table with this object
//	    FAMILY TABLE set NAME            weft.v1.Table with this set or map, without elements
//	    FAMILY TABLE set NAME ELEMENT    weft.v1.Element
//	    sum                              8 bytes: the sum of the checksums of the entries
//	shares
//	  PUBLISHER/NAME FAMILY TABLE   if the record says that the table's shares are apart from it
//	    KIND NAME  JSON of desired.TableRecord with this share
//	    sum        8 bytes: the sum of the checksums of the entries
//	staged
//	  PUBLISHER/NAME  a snapshot that is being stored
//	lineage
//	  id  a random text
//
// Numbers are big-endian. The messages of a table's entries, merged in the order of
// their keys, are the table. A patch reads and writes only the entries that it
// changes, and a commit to a large table only the shares that it changes.
//
// # Damage
//
// Each value of "state" ends with the FNV-1a checksum of its key and value, and a fragment has
// the sum of its entries (package store): a change of a byte, a missing entry and a fragment
// that was moved to another publisher are noticed. What is lost is logged and counted, and the
// rest is used.
//
// A start copies what it reads to a new database, because damage to what reading
// does not need, such as the list of free pages, would spread with the next write.
// The copy also leaves out the pages that are not used any more.
//
// # Versions
//
// A database has the first version that can hold its contents. So an older weft reads what
// a newer one wrote unless it holds something that the older one does not know. What is
// new in the format, such as a key of "state" or of a fragment, has a new version. A database of
// another version is left as it is, and Load returns [store.ErrVersion]. Load reads
// all earlier versions: testdata has a directory that each of them wrote.
//
// A weft ignores buckets that it does not know, and the database that it writes at its start lacks them. So
// "lineage" is another one after a version of before it has started, and the history knows that it
// may lack commits.
//
// Versions of weft before the database wrote record.json, flows.json and a directory
// named durable. Load renames them as it renames a damaged file, and does not read them.
//
// # Durability
//
// Each transaction is synced to the disk before it is answered; there are two syncs
// for each. A change is answered once it is stored, and changes that wait are
// stored together. A snapshot of more than 8,192 entries is stored in several
// transactions, none of which Load sees before the last. After a failure changes
// stay queued, and are tried again with every new change and after Config.Retry.
//
// A revision is never used twice, whatever the clock does: SaveRecord and
// ReserveRevision store a revision some thousand ahead of the commit, and a start
// counts from there. If the directory cannot be written only the clock is left.
//
// # Concurrency
//
// Load comes first. After it, Store, Failing, Room and SaveFlows may be used
// by any goroutine; SaveRecord, ReserveRevision and RemoveRecord belong to the
// writer. Run stores changes on the goroutine that calls it: Store only queues, and
// the writer waits for the disk only where it stores a record. bbolt has one
// transaction at a time, and one of Run takes milliseconds (a patch that changes
// 100,000 elements: some hundred).
//
// # Errors
//
// Load fails with store.ErrVersion or store.ErrInUse, and with trusted.ErrUnsafe or trusted.ErrLink if
// another user could change the directory. The errors of other methods name the
// operation that failed.
package statedir
