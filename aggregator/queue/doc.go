// Package queue decides which updates share a commit, and whose turn is next.
//
// Updates come in from any goroutine (Put). The writer takes the updates of one commit at a time (Take). An
// [Update] is known only by its publisher and size. Read queue.go first, then pace.go.
//
// # Turns
//
// Each publisher has a lane, which keeps the order of its updates. A commit has the small updates of all
// lanes, up to a share per publisher. A large update is committed alone. Small and large updates take
// turns, as do large updates of different lanes, so a small update waits for at most one large update. Hold
// blocks a lane while its first update is staged.
//
// The queue is unbounded: streams and unary calls bound their updates in flight.
//
// # Pauses
//
// Meter measures the processor time of a commit. After more than 20 ms the publisher pauses for four times
// as long while others are active, and so uses at most a fifth of the writer's time. After a second commit
// of more than 50 ms within 20 s, a publisher with limits pauses for 20 s.
//
// # Concurrency
//
// A Queue is safe for concurrent use. Take, Hold, Release, Meter and Rest are for one goroutine.
package queue
