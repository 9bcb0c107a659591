// Package netns makes network namespaces and connects them, for tests and for weft demo. It
// does not change other namespaces.
//
// A namespace exists until its Namespace is closed and its last socket and process have ended. The package
// works as root and as the mapped root of a user namespace (unshare -rn).
//
// # Concurrency
//
// All methods of Namespace may be called from several goroutines.
package netns
