// Package history records commits on the disk: what each one changed, and enough of the
// content of fragments to go back.
//
// The writer of the aggregator hands over a [Commit] after each commit, with
// [Recorder.Record], which never waits. The goroutine of package store writes it later.
// [Recorder.List] and [Recorder.Compare] read it. The package does not commit anything
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
// # Buckets
//
// The history is the bucket "history" of the store. PUBLISHER is "-" for what is common.
//
//	log
//	  PUBLISHER
//	    REVISION NUMBER  weft.v1.Revision: the publisher's part of an entry
//	before
//	  PUBLISHER
//	    REVISION NUMBER  JSON: what the publisher's fragments had before, as far as it is different
//	content
//	  PUBLISHER
//	    PUBLISHER/NAME   a bucket of the fragment's entries (package entries), as of the last
//	                     recorded commit; without entries if the content is not known
//	forgotten
//	  PUBLISHER          8 bytes: entries up to this revision were removed
//	  *                  8 bytes: the same for all publishers that are not in the log
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
// than [MaxContent] or a quarter of MaxBytes. The history uses the pages of the database again: it takes at
// most about twice MaxBytes. About a thousand publishers have a share of their own, even if nothing is left of it.
//
// A comparison says of each publisher what is known: if its part is removed after the first revision,
// the earlier content of all its fragments is not known. A comparison of one commit has what is left of
// that commit.
//
// # Faults
//
// A kill or a power failure loses the commits that were not written yet: at most those of a
// second, and half a minute of patient ones. A history that is damaged is lost as a whole, and a
// new one begins (package store). If it cannot be written, that is logged and counted, and tried
// again after the store's Retry. What waits meanwhile is bounded: beyond that, commits
// are joined in one entry that says how many are missing, and the content of their fragments
// is not known before their next snapshot.
//
// # Concurrency
//
// All methods may be called by any goroutine. Readers have a transaction of their
// own and do not wait for the goroutine that writes.
//
// # Errors
//
// The errors are in errors.go. Match with errors.Is.
package history
