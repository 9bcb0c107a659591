// Package conformance runs Kubernetes' own sig-network specs against weft, and against
// kube-proxy in the same way, in one machine. Read conformance_test.go first.
//
//	make conformance ARGS="-conformance.focus 'Services.*NodePort'"
//	cd deploy/e2e && go test -count=1 -v -timeout 6h ./conformance -conformance.proxy weft,kube-proxy -conformance.runs 3 -conformance.focus 'should.*hairpin'
//	go test -count=1 -v -timeout 2h ./conformance -conformance.proxy weft -conformance.hold
//
// Without -conformance.proxy all tests are skipped and nothing is built.
//
// A world is a network of namespaces (package lab) with a control plane in Control (package cluster): etcd,
// kube-apiserver, kube-controller-manager and kube-scheduler. Each node has a kubelet (cmd/node),
// which runs pods as processes in namespaces, and one proxy. CoreDNS runs as pods. Package balancer
// gives Services of type LoadBalancer their addresses. The specs (package specs) run in Control, where clients outside
// the cluster are. Each run has a world of its own.
//
// With -conformance.chaos weft is killed on every node every two seconds and started again, and
// a foreign program flushes the ruleset of every node.
//
// The logs of the last run are in bin/conformance/logs, in a directory for each run. All
// processes end with the test.
//
// One concern in each file: main_test.go has flags and programs, world_test.go what runs, daemon_test.go how programs are
// started again, proxy_test.go weft and kube-proxy, wait_test.go when a world is ready, chaos_test.go the faults.
package conformance
