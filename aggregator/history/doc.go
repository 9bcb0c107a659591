// Package history records commits on the disk: what each one changed, and enough of the
// content of fragments to go back.
//
// The writer of the aggregator hands over a [Commit] after each commit, with
// [Recorder.Record], which never waits. One goroutine, [Recorder.Run], writes what was handed
// over. [Recorder.List] and [Recorder.Compare] read it. The package does not commit anything
// and knows no rules.
//
// Read first: queue.go (what waits for the disk), then write.go (how a commit is stored), then
// read.go (how earlier content is found).
//
// # The database
//
// The file history.db is a bbolt database beside that of package statedir. Losing it loses
// the history and nothing else.
//
//	meta
//	  version    "1", the version of this format
//	  forgotten  8 bytes: entries up to this revision were removed
//	  entries    8 bytes: the number of entries in "log"
//	  log        8 bytes: the bytes of "log" and "before"
//	  content    8 bytes: the bytes of "content"
//	  lineage    that of the last start (package statedir)
//	log
//	  REVISION NUMBER  weft.v1.Revision
//	before
//	  REVISION NUMBER  JSON: what the fragments had before, as far as it is different
//	content
//	  PUBLISHER/NAME   a bucket of the fragment's entries (package entries), as of the last
//	                   recorded commit; "unknown" alone if the content is not known
//
// A commit is stored as a difference backwards: its entry has what the changed entries of a
// fragment were before. Content of an earlier revision is that of "content", with the
// differences of the later revisions undone, the newest first. So an update costs what it
// changes, and the oldest entries can be removed without a look at the others.
//
// # Bounds
//
// The oldest entries are removed when there are more than Config.MaxEntries, or when the
// entries and the content have more than Config.MaxBytes. Pages of the file are used again:
// it does not grow beyond about twice MaxBytes. The content of a fragment is not kept if it
// has more than [MaxContent] or a quarter of MaxBytes, or if
// all content would have more than half of MaxBytes.
//
// # Faults
//
// A kill or a power failure loses the commits that were not written yet, at most those of a
// tenth of a second: bbolt falls back to the last transaction that is complete. A database
// that is damaged is renamed to history.db.damaged, in place of an earlier one, and a new one
// begins. A database of another version is left as it is: nothing is recorded, and commits go
// on. If the file cannot be opened or written, that is logged once, counted by Config.Failed,
// and tried again after Config.Retry. What waits meanwhile is bounded: beyond that, commits
// are joined in one entry that says how many are missing, and the content of their fragments
// is not known before their next snapshot.
//
// A version of weft that knows no history commits without it. The lineage shows that, and the first
// entry after it says that the content of every fragment may be another, so that nothing
// is compared with what it was before, or taken back to it, by mistake.
//
// # Concurrency
//
// All methods may be called by any goroutine; Run once. Readers have a transaction of their
// own and do not wait for the writer of the file.
//
// # Errors
//
// The errors of reads are in errors.go. Match with errors.Is.
package history
