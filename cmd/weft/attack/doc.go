// Package attack has no code: its tests are attacks of hostile publishers on a daemon.
//
// Each attack runs against a fresh "weft aggregator" in a network namespace of its own, as
// an unprivileged user. Beside it a victim, another publisher, changes one element of a
// set after the other. An attack is contained if
//
//   - the resident memory of the daemon grows by at most 64 MiB,
//   - no update of the victim is lost, and 99 in 100 take at most 150 ms,
//   - the kernel's objects of the victim are as before,
//   - nft can load what "nft list ruleset" prints,
//   - what the attack wanted did not happen.
//
// An attack on what the kernel pays measures that: how long another writer waits for the lock of
// nftables, and how long the most expensive packet takes that is admitted.
//
// "make attack" runs all of them and prints a line for each. Read host_linux_test.go first;
// the attacks are in the other files, by what they aim at.
package attack
