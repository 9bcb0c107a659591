// Package container runs inside the namespaces of a container: [Init] makes its file system and becomes its
// first process, and [Exec] runs another process in it. cmd/container must be small, because it starts for
// every container and for every exec probe.
//
// In comes a [Spec] or a [Command] as JSON from file descriptor 3. Errors go to file descriptor 4, which is
// closed on success.
//
// # Concurrency
//
// [Init] and [Exec] stay on the main thread, because each thread has its own namespaces.
package container
