// Package pods tests package node with pods: two nodes, a real control plane, and Pods that name their node,
// so that the scheduler is unnecessary.
//
//	cd deploy/e2e && go test -count=1 -v ./node/pods
//	go test -count=1 -v -run 'TestPods/probe' ./node/pods
//
// Scenarios (scenario_test.go) run at once, each in its own Kubernetes namespace. The logs of the last run
// are in deploy/e2e/bin/node/logs.
package pods
