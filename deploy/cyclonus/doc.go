// Package cyclonus compares the NetworkPolicy frontend with an oracle that is not weft's
// own: the 230 cases, of 256 steps, that github.com/mattfenwick/cyclonus generates, and what
// it expects of each. It is a module of its own, so that the oracle's dependencies
// reach neither the product nor deploy/e2e.
//
//	cd deploy/cyclonus && go test -count=1 -v -timeout 30m .
//	go test -count=1 -v -run TestPackets . -cyclonus.steps 40 -cyclonus.seed 7
//
// First the evaluator of frontends/testing/policytest is compared with the oracle, without
// packets: oracle_test.go. Then weft enforces every step on three nodes made of network
// namespaces, and real packets go between all pods, TCP, UDP and SCTP, both families:
// packets_test.go. opening_test.go sends a packet each millisecond along every flow that must
// stay denied, and packets along every flow that must stay allowed, while pods, namespaces and
// policies change and weft and the API server end and start. plan_test.go decides which
// flows these are, stream_test.go sends, and the kernel counts: tally_test.go. services_test.go
// has Services and policies on one node, and pods_test.go pods that begin and end.
//
// The oracle has bugs. Each is named and shown in oracle_test.go; no other difference is
// excused.
//
// The tests build weft into bin/ and run themselves again in namespaces of their own, like
// those of deploy/e2e. The logs of the last run are in bin/logs.
package cyclonus
