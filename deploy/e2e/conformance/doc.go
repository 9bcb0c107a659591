// Package conformance runs Kubernetes' own sig-network specs against weft and kube-proxy in one machine. Read
// conformance_test.go first.
//
//	make conformance ARGS="-conformance.focus 'Services.*NodePort'"
//	cd deploy/e2e && go test -count=1 -v -timeout 6h ./conformance -conformance.proxy weft,kube-proxy -conformance.runs 3 -conformance.focus 'should.*hairpin'
//	go test -count=1 -v -timeout 2h ./conformance -conformance.proxy weft -conformance.hold
//
// Without -conformance.proxy all tests are skipped, without a build.
//
// A world is a network of namespaces (package lab) with a full control plane (package cluster). Each node has
// a kubelet (cmd/node) and one proxy. CoreDNS runs as pods. Package balancer implements Services of type
// LoadBalancer. The specs (package specs) run in Control, outside of the cluster. Each run has its own world.
//
// With -conformance.chaos weft is killed and restarted on every node every two seconds, and a foreign program
// flushes the rulesets.
//
// Each run has a directory of logs in bin/conformance/logs.
package conformance
