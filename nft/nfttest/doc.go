// Package nfttest gives tests a network namespace of their own and runs nft(8)
// and other binaries inside it; NS.Netlink gives what nft makes of rules, to
// compare with. It imports nothing of weft, so that every package can use it,
// and it is for tests only: whatever takes a testing.TB ends the test when
// something goes wrong.
//
// A namespace is made with New and lives as long as the test. Code runs in it
// through NS.Do, on an OS thread that is thrown away afterwards; sockets that
// the code opens stay in the namespace wherever they are used later. All works
// as root and as the mapped root of a user namespace (unshare -rn).
//
// What a test needs and the machine lacks is stated with Require: such a test
// is skipped, but fails where the environment says CI=true.
//
// # Concurrency
//
// All methods of NS may be called from several goroutines at once.
package nfttest
