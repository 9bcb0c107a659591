// Package container is what runs inside the namespaces of a container: [Init] makes its file system and becomes its
// first process, and [Exec] runs another process in it. cmd/container is the program around them, which is small, because it is
// started for every container and for every probe that executes a command.
//
// What comes in is a [Spec] or a [Command] as JSON from file descriptor 3. Errors go to file descriptor 4, which is closed if
// there are none.
//
// # Concurrency
//
// Everything happens on the main thread, because namespaces are a thread's.
package container
