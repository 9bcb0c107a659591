// Package e2e runs weft against a real kube-apiserver and etcd, with real traffic, in
// network namespaces of its own. Read scenario_test.go first.
//
//	cd deploy/e2e && go test -count=1 -v -timeout 30m ./...
//	go test -count=1 -v -run 'TestScenarios/service/' .
//	go test -count=1 -v -run 'TestScenarios/fault/api-server-away' . -e2e.outage 15m
//
// The tests first build the control plane (cmd/controlplane; minutes when the build
// cache is cold) and weft from the parent module into bin/, then run
// themselves again in new network, mount and PID namespaces (and a user
// namespace when they are not root), so that nothing reaches the machine's own
// network and nothing outlives them.
//
// It runs a control plane ([cluster]) and three nodes with pods ([lab]). On node-1 and
// node-3 weft is one process, `weft run`. On node-2 it is two, as in the DaemonSet: an
// aggregator with only CAP_NET_ADMIN, and a frontend without capabilities. Both use the
// service account of deploy/kubernetes, with exactly its rights.
//
// In scenarios with Pod objects the real EndpointSlice controller (of kube-controller-manager) makes the endpoints, and
// kubelet_test.go reports the status of the Pods. Scenarios that need exact slices write
// them.
//
// A scenario is a function and a line in the table in scenario_test.go. It has its own
// Kubernetes namespace. The logs of the last run are in bin/logs.
//
// The report at the end has the figures: what clients saw of a rolling update, of
// weft's ends under load and of outages. A load beside them that goes to a pod directly shows what
// the machine itself made of the same requests.
//
// Each test file has one concern: main_test.go how the process gets its
// namespaces, world_test.go what runs, objects_test.go what is written to the API
// server, kubelet_test.go the Pods, probe_test.go what is asked of the network, and the rest are scenarios.
package e2e
