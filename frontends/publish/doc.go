// Package publish keeps one fragment at weft's aggregator in sync with a frontend's model.
//
// A Renderer provides changes of items, such as Services or NetworkPolicies. The package sends a snapshot of
// the fragment first and then patches, one update at a time. It sends no update before Config.Ready, so a
// restart does not withdraw content.
//
// # Outcomes
//
// An item is in force only after this process receives the acknowledgement of a commit.
//
// # Rejected updates
//
// If violations name items, the fragment is published without them. Otherwise it is sent again as a whole,
// because the cause may have passed, and then bisected. After a restart the first update is bisected with
// plans, because a partial update would withdraw content of the earlier process. A refused item is retried
// after 10 s, then at growing intervals up to 5 min; earlier, after at least 1 s, if it changes, or if a
// limit refused it and less is in force now.
//
// A Renderer with parts can freeze a part (see Parts); the other parts continue.
//
// Every other failure is followed by a snapshot, after 1 s at first and at most Config.MaxRetry.
//
// # Concurrency
//
// The goroutine of Publisher.Run owns all state and calls the Renderer. The session's goroutines also call
// Renderer.Snapshot after a reconnect. Wake, Status and Backlog are safe for concurrent use.
//
// # Errors
//
// Run fails only if another process publishes the fragment.
package publish
