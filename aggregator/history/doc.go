// Package history records commits on the disk: their changes, and enough content of fragments to go
// back.
//
// The writer hands over a [Commit] after each commit with [Recorder.Record], which never waits. The
// goroutine of package store writes it later. [Recorder.List] and [Recorder.Compare] read.
//
// # Groups
//
// Commits share transactions. A commit waits at most a second for others, a [Commit.Patient] one
// half a minute; 512 commits or 1 MiB of content wait no longer. Readers have the waiting group
// written first.
//
// # Buckets
//
// The history is the bucket "history" of the store. PUBLISHER is "-" for common data.
//
//	log
//	  PUBLISHER
//	    REVISION NUMBER  weft.v1.Revision: the publisher's part of an entry
//	before
//	  PUBLISHER
//	    REVISION NUMBER  JSON: the earlier content of the publisher's fragments, where different
//	content
//	  PUBLISHER
//	    PUBLISHER/NAME   a bucket of the fragment's entries (package entries), as of the last
//	                     recorded commit; without entries if the content is not known
//	forgotten
//	  PUBLISHER          8 bytes: entries up to this revision were removed
//	  *                  8 bytes: the same for all publishers that are not in the log
//
// The parts of an entry have the same REVISION NUMBER. Totals, such as the number of changes, are
// with the only publisher of the entry, or under "-".
//
// A commit is stored as a difference backwards: the earlier values of changed entries. Earlier
// content is "content" with the later differences undone, the newest first. So the oldest entries
// can be removed alone.
//
// # Bounds
//
// At most Config.MaxEntries entries are kept (each publisher's part counts), and Config.MaxBytes of
// entries and content. The publisher with the most loses its oldest entry first. Content takes at
// most half of MaxBytes: beyond, the publisher with the most content loses its largest fragment. A
// fragment of more than [MaxContent] or a quarter of MaxBytes is not kept. On the disk a history
// takes at most about twice MaxBytes.
//
// If a publisher's part after the first compared revision was removed, the earlier content of all
// its fragments is unknown. A comparison of one commit has the rest of that commit.
//
// # Faults
//
// A crash loses the commits that were not written yet. A damaged history is lost as a whole
// (package store). A failed write is logged, counted and tried again. Too many waiting commits are
// joined in one entry with the number of missing ones; the content of their fragments is unknown
// until the next snapshot.
//
// # Concurrency
//
// Any goroutine may call all methods. Readers have their own transaction and do not wait for the
// writer.
//
// # Errors
//
// The errors are in errors.go. Match with errors.Is.
package history
