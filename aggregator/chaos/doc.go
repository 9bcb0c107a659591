// Package chaos is only a test. It runs a real aggregator and eight real publishers as
// processes in private network namespaces, kills, stops and disconnects them, lets a foreign
// process flush and delete, and compares the kernel with the merge of all acknowledged
// updates.
//
//	go test ./aggregator/chaos -chaos.duration 10s -chaos.seed 7
//	go test -race -count=1 -v -timeout 3h -run '^TestChaos$' ./aggregator/chaos -chaos.duration 10m -chaos.fresh
//
// # Claims
//
// The test checks four promises.
//
//   - An update acknowledged as committed is in the kernel, even after later kills.
//   - No part of a rejected update is in the kernel.
//   - The kernel holds the merge of the two, in every table, with every element, map winner
//     and rule in its place; foreign tables are unchanged.
//   - A TCP stream through a DNATed service loses no byte.
//
// # Method
//
// The conductor (conductor_test.go) is one goroutine. It draws each step from the seed and
// the step's number, tells publishers over pipes which updates to send, and records their
// answers. If a process is killed before the answer to its update, the update may be in or
// out: the conductor keeps all possible contents until the publisher has come back and a
// snapshot is acknowledged. At a quiet point no update is in flight and every fragment has
// one content. merge_test.go merges these, without code of aggregator/desired, and
// listing_test.go reads "nft list ruleset".
//
// The seed determines the steps, but not the update in flight at the instant of a kill. So
// a failing seed fails often, not always.
//
// # Exclusions
//
// Elements with timeouts, dynamic sets, counters and limits: their content depends on more
// than acknowledged updates.
package chaos
