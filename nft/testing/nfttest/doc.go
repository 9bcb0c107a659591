// Package nfttest provides tests with network namespaces, with nft(8) and other binaries inside them, and
// with corpora of rules to compare with nft(8). Of weft it imports only netns, so that every package can
// use it.
//
// A function with a testing.TB ends the test if it fails. Read netns.go first, then netlink.go.
//
// # Concurrency
//
// All methods of NS may be called from several goroutines.
package nfttest
