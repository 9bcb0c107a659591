// Package retry calls functions when they are due, and again after errors.
//
// The function keeps a queue, for example of commits for the disk. [Task.Wake] reports new work,
// [Task.Run] calls the function. After an error the function must keep its work.
//
// # Concurrency
//
// Run and Call are for one goroutine at a time. Any goroutine may call the other methods.
//
// # Errors
//
// The errors are the function's.
package retry
