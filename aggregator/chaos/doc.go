// Package chaos is a test and nothing else: it runs a real aggregator and eight
// real publishers as processes in private network namespaces, kills, stops and
// disconnects them, lets a foreign process flush and delete, and compares the
// kernel with the merge of what was acknowledged.
//
//	go test ./aggregator/chaos -chaos.duration 10s -chaos.seed 7
//	make chaos DURATION=10m
//
// # What is claimed
//
// The test is of four promises.
//
//   - An update that was acknowledged as committed is in the kernel, whatever
//     is killed afterwards.
//   - An update that was rejected is not, nor any part of it.
//   - What the kernel holds is the merge of the two, in every table, with every
//     element, map winner and rule in its place; tables of others are as they
//     were left.
//   - A TCP stream through a DNATed service loses no byte.
//
// # How
//
// The conductor (conductor_test.go) is one goroutine. It draws each step from
// the seed and the step's number, tells publishers over pipes what to send, and
// notes what they were answered. An update that was sent by a process that was
// killed before its answer may be in or out: the conductor keeps all contents
// that are possible, until the publisher has come back and a snapshot is
// acknowledged. At a quiet point nothing is on its way and every fragment has
// one content; merge_test.go unites these, in code that has nothing of
// aggregator/desired, and listing_test.go reads "nft list ruleset".
//
// The choice of steps is the seed's; which update is on its way at the instant
// of a kill is the machine's. A failing seed so fails often, not always.
//
// # What is left out
//
// Elements with timeouts, dynamic sets, counters and limits: their content is
// not the merge of what was acknowledged alone.
package chaos
