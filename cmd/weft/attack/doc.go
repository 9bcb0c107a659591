// Package attack contains only tests: attacks of hostile publishers on a daemon.
//
// Each attack runs as an unprivileged user against a fresh "weft aggregator" in its own network
// namespace. Meanwhile another publisher, the victim, changes elements one by one. An attack is
// contained if
//
//   - the resident memory of the daemon grows by at most 64 MiB,
//   - no update of the victim is lost, and 99 in 100 take at most 150 ms,
//   - the kernel's objects of the victim are unchanged,
//   - nft can load the output of "nft list ruleset",
//   - the attack misses its goal.
//
// "make attack" runs all attacks. An attack on kernel resources measures another writer's wait for
// the lock of nftables, and the most expensive admitted packet.
package attack
