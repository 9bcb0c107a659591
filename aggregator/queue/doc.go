// Package queue decides which updates share a commit, and whose turn is next.
//
// Updates come in from any goroutine (Put). The writer takes the updates of one commit at a time
// (Take). The package does not know the content of an update: an [Update] has a publisher and a size.
// Read queue.go first, then pace.go.
//
// # Turns
//
// Each publisher has a lane. The updates of a lane keep their order. A commit has the small updates
// of all lanes, up to a share for each publisher. A large update has a commit to itself. Small and
// large updates take turns, so a small update waits for at most one large update, and a large
// update is not starved. Large updates of different lanes take turns, too. Hold keeps a lane
// waiting while its first update is staged.
//
// The queue has no bound of its own: each stream and each unary call has a bounded number of
// updates in flight.
//
// # Pauses
//
// Meter measures the processor's time of a commit. After a commit of more than 20 ms its publisher
// pauses for four times as long while others are active, so it uses at most a fifth of the writer's
// time. After a second commit of more than 50 ms within 20 s, a publisher with limits pauses for
// 20 s.
//
// # Concurrency
//
// A Queue is safe for concurrent use. Take, Hold, Release, Meter and Rest are for one goroutine.
package queue
