// Package history records commits on the disk: their changes, and enough content of fragments to go
// back.
//
// [Recorder.Record] never waits; a task of package retry writes later.
//
// # Groups
//
// Commits share transactions. The constants of queue.go bound their wait. Readers have the waiting
// group written first.
//
// # Buckets
//
// In the bucket "history" of the store, PUBLISHER is "-" for common data.
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
//	  *                  8 bytes: the greatest such revision of removed publishers; it holds for all
//
// An entry is a commit. Its parts have the same REVISION NUMBER, 16 bytes. Totals are with the only
// publisher of the entry, otherwise under "-".
//
// Entries hold backward differences. Earlier content is "content" with later differences undone,
// the newest first: the oldest entries can be removed alone.
//
// # Bounds
//
// Config.MaxEntries bounds entries (each publisher's part counts), Config.MaxBytes entries and
// content. The publisher with the most loses its oldest entry first. Content takes at most half of
// MaxBytes: beyond, the publisher with the most loses its largest fragment. A fragment of more than
// [MaxContent] or a quarter of MaxBytes is not kept. The disk holds at most about twice MaxBytes.
//
// If a publisher's part after the first compared revision was removed, the earlier content of all
// its fragments is unknown. A comparison over a single commit has the remaining parts of the
// commit.
//
// # Faults
//
// A crash loses unwritten commits. A damaged history is lost as a whole (package store). A failed
// write is logged, counted and tried again. Commits beyond the queue are joined in one entry with
// their number; the content of their fragments is unknown until the next snapshot.
//
// # Concurrency
//
// Any goroutine may call all methods. Readers do not wait for the writer.
//
// # Errors
//
// The errors are in errors.go.
package history
