// Package retry calls functions when they are due, and again after errors.
//
// A [Task] has a queue of its own, for example the commits that wait for the disk. [Task.Wake] says
// that there is work, [Task.Run] calls the function. After an error the function keeps its work: it
// is called again after Config.Retry, or at once for [Task.Await]. The Task has the last error, logs
// each new one and counts all.
//
// # Concurrency
//
// Run and Call are for one goroutine at a time. Any goroutine may call the other methods.
//
// # Errors
//
// The errors are the function's.
package retry
