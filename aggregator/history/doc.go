// Package history records commits on the disk: what each one changed, and enough of the
// content of fragments to go back.
//
// The writer of the aggregator hands over a [Commit] after each commit, with
// [Recorder.Record], which never waits. One goroutine, [Recorder.Run], writes what was handed
// over. [Recorder.List] and [Recorder.Compare] read it. The package does not commit anything
// and knows no rules.
//
// Read first: queue.go (what waits for the disk), then write.go (how a commit is stored), then
// share.go (what is removed), then read.go (how earlier content is found).
//
// # Groups
//
// A transaction costs more than the commit of one endpoint, so commits share them. A commit
// waits at most a second for others, one that is [Commit.Patient] half a minute; 512 commits, or
// content of 1 MiB, wait no longer. Until then an update is kept as it is: messages are made of
// it when it is written. Reads have the group that waits written first.
//
// # The database
//
// The file history.db is a bbolt database beside that of package statedir. Losing it loses
// the history and nothing else.
//
//	meta
//	  version      "2", the version of this format
//	  lineage      that of the last start (package statedir)
//	  contentSize  8 bytes: the bytes of all content
//	  forgotten    8 bytes: all entries up to this revision may be removed
//	publishers
//	  PUBLISHER, or "-" for what is common
//	    log
//	      REVISION NUMBER  weft.v1.Revision: the publisher's part of an entry
//	    before
//	      REVISION NUMBER  JSON: what the publisher's fragments had before, as far as it is different
//	    content
//	      PUBLISHER/NAME   a bucket of the fragment's entries (package entries), as of the last
//	                       recorded commit; "unknown" alone if the content is not known
//	    entries, logSize, contentSize  8 bytes each: the number of entries, and the bytes of both lists and of the content
//	    forgotten                      8 bytes: entries up to this revision were removed
//
// The parts of an entry have the same REVISION NUMBER. What is of all fragments together, such as the number of
// changes, is with the only publisher of the entry, or under "-".
//
// A commit is stored as a difference backwards: its entry has what the changed entries of a
// fragment were before. Content of an earlier revision is that of "content", with the
// differences of the later revisions undone, the newest first. So an update costs what it
// changes, and the oldest entries can be removed without a look at the others.
//
// # Bounds
//
// There are at most Config.MaxEntries entries, each publisher's part of one counted, and at most Config.MaxBytes
// of entries and content. What must go is the oldest entry of the publisher that has the most, so no publisher
// loses an entry while another has more than it. All content is at most half of MaxBytes: beyond that, the largest
// fragment of the publisher with the most content is not kept, and neither is a fragment of more
// than [MaxContent] or a quarter of MaxBytes. Pages of the file are used again: it does not grow beyond
// about twice MaxBytes. About a thousand publishers have a share of their own, even if nothing is left of it.
//
// A comparison says of each publisher what is known: if its part is removed after the first revision,
// the earlier content of all its fragments is not known. A comparison of one commit has what is left of
// that commit.
//
// # Faults
//
// A kill or a power failure loses the commits that were not written yet: at most those of a
// second, and half a minute of patient ones. bbolt falls back to the last transaction that is complete. A database
// that is damaged is renamed to history.db.damaged, in place of an earlier one, and a new one
// begins. So is one of version 1. A database of a later version is left as it is: nothing is recorded, and commits go
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
// The errors of reads are in errors.go, those of the database in package store. Match with errors.Is.
package history
