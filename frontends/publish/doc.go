// Package publish is the loop that a frontend needs between its model and weft's
// aggregator: it keeps one fragment at the aggregator as the frontend wants it.
//
// In come changes of items, such as Services or NetworkPolicies, from a Renderer; out
// go a snapshot of the fragment first, and patches from then on. One update is in
// flight at a time, and the changes that arrive meanwhile are in the next one. Read
// renderer.go and publisher.go first; outcome.go has what became of each item,
// quarantine.go and bisect.go find the items that the aggregator rejects, session.go is all
// that talks to the aggregator.
//
// The package does not look into items, and does not render. It publishes nothing
// before Config.Ready, so a restart does not withdraw what is not known yet.
//
// # Outcomes
//
// Each item is wanted, in force since a revision, refused, or left out because it cannot be
// rendered. It is in force only after an acknowledged commit of this process.
//
// # Rejected updates
//
// If violations name items, the fragment is published without these. Otherwise the
// fragment is sent once more as a whole, because the cause may have passed, and then
// bisected: an item among n takes log2(n) updates. What is accepted is committed at once, and
// so is what changes meanwhile. The first update after a restart is bisected by plans: without
// most items, it would withdraw what the process before left in force. An item that is refused
// is quarantined: it is tried again after 10 s, and then at growing intervals up to 5 min; if
// it changes, after a second at the earliest, and likewise if a limit keeps it out and less is
// in force than before.
//
// A Renderer whose fragment has parts, such as a table for each IP family, can freeze
// one (see Parts): if everything that a rejection names lies in one part, the content
// of that part which is in force stays, and the rest goes on.
//
// Every other failure is followed by a snapshot, after a second at first and in the end
// after Config.MaxRetry. Changes do not shorten that wait.
//
// # Concurrency
//
// Publisher.Run is one goroutine that owns all bookkeeping. It calls the Renderer; only
// Renderer.Snapshot is also called by the session's goroutines, when a connection is
// made anew. Wake, Status and Backlog are safe for concurrent use.
//
// # Errors
//
// Run ends with an error only if another process publishes the fragment. While there is
// no aggregator, or while it refuses this process, Run tries again; Status has the reason,
// and it is logged once a minute.
package publish
