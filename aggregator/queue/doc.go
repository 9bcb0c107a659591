// Package queue decides which updates share a commit, and which publisher is next.
//
// Updates come in from any goroutine (Put). The writer takes the updates of a commit together (Take). Read
// queue.go first, then pace.go.
//
// # Turns
//
// The updates of a publisher keep their order in a lane. A commit has the small updates of all lanes, up to
// a share per publisher. A large update is committed alone. Small and large updates take turns, as do large
// updates of different lanes. So a small update waits for at most one large update.
//
// After a long commit a publisher pauses, to use at most a fifth of the writer's time while others are
// active. After a slow commit, the publisher's small updates take turns as large ones.
//
// The queue is unbounded: streams and unary calls bound their updates in flight.
//
// # Concurrency
//
// A Queue is safe for concurrent use. Take, Hold, Release, Meter and Rest are for one goroutine.
package queue
