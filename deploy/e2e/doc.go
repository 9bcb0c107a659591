// Package e2e runs weft against a real kube-apiserver and etcd with real
// traffic, in network namespaces of its own.
//
//	cd deploy/e2e && go test -count=1 -v -timeout 30m ./...
//	go test -count=1 -v -run 'TestScenarios/service/' .
//
// The tests first build the control plane (cmd/controlplane; minutes when the build
// cache is cold) and weft from the parent module into bin/, then run
// themselves again in new network, mount and PID namespaces (and a user
// namespace when they are not root), so that nothing reaches the machine's own
// network and nothing outlives them.
//
// What runs: a control plane ([cluster]) and two nodes with pods behind them
// ([lab]). On node-1 weft is one process, `weft run`; on node-2 it is two, as in
// the DaemonSet: an aggregator with CAP_NET_ADMIN alone and a frontend with no
// capability. Both reach the API server as the service account of
// deploy/kubernetes, with the rights given there and no others.
//
// A scenario is one function and one line in the table in scenario_test.go. It gets a
// Kubernetes namespace of its own, and fails by the usual means of testing. The logs of the last run are in bin/logs.
//
// Each test file has one concern: main_test.go how the process gets its
// namespaces, world_test.go what runs, objects_test.go what is written to the API
// server, probe_test.go what is asked of the network, and the rest are scenarios.
package e2e
