// Package chaos is only a test. It runs an aggregator and eight publishers as processes in network
// namespaces. It kills, stops and disconnects them, lets a foreign process flush and delete, and
// compares the kernel with the merge of acknowledged updates.
//
//	go test ./aggregator/chaos -chaos.duration 10s -chaos.seed 7
//	go test -race -count=1 -v -timeout 3h -run '^TestChaos$' ./aggregator/chaos -chaos.duration 10m -chaos.fresh
//
// # Claims
//
//   - An update acknowledged as committed is in the kernel, even after later kills.
//   - No part of a rejected update is in the kernel.
//   - The kernel holds the merge, in every table, with every element, map winner and rule in its
//     place; foreign tables are unchanged.
//   - A TCP stream through a DNATed service loses no byte.
//
// # Method
//
// The conductor (conductor_test.go) draws each step from the seed and the step's number, tells
// publishers which updates to send, and records their answers. After a kill before an answer, it
// keeps all possible contents until the publisher has come back and a snapshot is acknowledged.
//
// The seed does not determine the update in flight at a kill, so a failing seed fails often, not
// always. Elements with timeouts, dynamic sets, counters and limits are excluded.
package chaos
