// Package cyclonus compares the NetworkPolicy frontend with the oracle of github.com/mattfenwick/cyclonus, in
// its 230 generated cases of 256 steps. A separate module keeps the oracle's dependencies out of deploy/e2e.
//
//	cd deploy/cyclonus && go test -count=1 -v -timeout 30m .
//	go test -count=1 -v -run TestPackets . -cyclonus.steps 40 -cyclonus.seed 7
//
// oracle_test.go compares the evaluator of frontends/testing/policytest with the oracle, without packets. It
// names and shows each bug of the oracle, and excuses no other difference. packets_test.go enforces every step
// on three nodes of network namespaces, and sends TCP, UDP and SCTP of both families between all pods.
//
// opening_test.go sends a packet each millisecond along every flow that must stay denied or allowed, while
// pods, namespaces and policies change and weft and the API server restart. services_test.go has Services and
// policies, pods_test.go pods that begin and end.
//
// The tests build weft into bin/ and run in their own namespaces. The logs of the last run are in bin/logs.
package cyclonus
