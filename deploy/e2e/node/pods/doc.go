// Package pods tests the node (package node) with pods: two nodes, a real control plane,
// and Pods that name their node, so that no scheduler is needed.
//
//	cd deploy/e2e && go test -count=1 -v ./node/pods
//	go test -count=1 -v -run 'TestPods/probe' ./node/pods
//
// world_test.go is what runs, scenario_test.go the list of scenarios and what they share. A scenario has a Kubernetes
// namespace of its own, and all run at once. The logs of the last run are in deploy/e2e/bin/node/logs.
package pods
