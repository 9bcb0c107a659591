// Package nfttest provides tests with network namespaces, with nft(8) and other binaries
// that run inside them, and with the corpora of rules that are compared with nft(8). It is
// only for tests, and imports no other package of weft than netns, so that every package can
// use it.
//
// What comes in is a testing.TB and the texts of rules; what goes out is the output of
// nft, or the compiled form of each rule (NS.Netlink). A failure ends the test. Read
// netns.go first, then netlink.go.
//
// New creates a namespace that exists as long as the test. NS.Do runs code
// in it, on an OS thread that is not used afterwards. Sockets that the code opens stay in
// the namespace, wherever they are used later. All of this works as root and as the mapped
// root of a user namespace (unshare -rn).
//
// A test states its requirements with Require. If the machine lacks one, the test is
// skipped, or fails if the environment has CI=true.
//
// # Concurrency
//
// All methods of NS may be called from several goroutines.
package nfttest
