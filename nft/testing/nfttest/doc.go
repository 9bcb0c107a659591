// Package nfttest provides tests with network namespaces, with nft(8) and other binaries inside them, and
// with corpora of rules to compare with nft(8). It is only for tests. Of weft it imports only netns, so
// that every package can use it.
//
// Functions take a testing.TB and the texts of rules, and return the output of nft, or the compiled form of
// each rule (NS.Netlink). A failure ends the test. Read netns.go first, then netlink.go.
//
// New creates a namespace for the duration of the test. NS.Do runs code in it, on an OS thread that is not
// used afterwards. Sockets of this code stay in the namespace, wherever they are used later. All of this
// works as root and as the mapped root of a user namespace (unshare -rn).
//
// A test calls Require for its requirements. If the machine lacks one, the test is skipped, or fails if the
// environment has CI=true.
//
// # Concurrency
//
// All methods of NS may be called from several goroutines.
package nfttest
