// Package e2e runs weft against a real kube-apiserver and etcd, with real traffic, in network namespaces of
// its own. Read scenario_test.go first.
//
//	cd deploy/e2e && go test -count=1 -v -timeout 30m ./...
//	go test -count=1 -v -run 'TestScenarios/fault/' .
//	go test -count=1 -v -run 'TestScenarios/fault/api-server-away' . -e2e.outage 15m
//
// The tests build the control plane (cmd/controlplane) and weft into bin/, and run themselves again in new
// network, mount and PID namespaces (and a user namespace if they are not root).
//
// TestEarlier repeats some scenarios with the kube-apiserver of earlier minor versions (package earlier):
//
//	go test -count=1 -v -run "^TestEarlier$" . -earlier 1.36,1.35
//
// A control plane ([cluster]) serves three nodes with pods ([lab]). node-1 and node-3 run `weft run`. node-2
// runs the DaemonSet's two processes: an aggregator with only CAP_NET_ADMIN, and a frontend without
// capabilities. Both use the service account of deploy/kubernetes.
//
// A scenario is a function and a line in the table in scenario_test.go, with its own Kubernetes namespace.
// Scenarios write exact slices. Package differential has the behaviours of Services. The logs of the last run
// are in bin/logs.
package e2e
