// Package attack contains only tests: attacks of hostile publishers on a daemon.
//
// Each attack runs as an unprivileged user against a fresh "weft aggregator" in its own network
// namespace. Meanwhile a victim, another publisher, changes elements of a set one by one. An attack is
// contained if
//
//   - the resident memory of the daemon grows by at most 64 MiB,
//   - no update of the victim is lost, and 99 in 100 take at most 150 ms,
//   - the kernel's objects of the victim are unchanged,
//   - nft can load the output of "nft list ruleset",
//   - the attack misses its goal.
//
// An attack on kernel resources measures the wait of another writer for the lock of nftables, and the
// time of the most expensive admitted packet.
//
// "make attack" runs all attacks and prints a line for each. Read host_linux_test.go first; the other
// files have the attacks by their targets.
package attack
