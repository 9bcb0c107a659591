// Package peers measures `weft run --network-policy` beside other engines of NetworkPolicy on one node in one
// run: the start with 1,000 policies, changes of one policy, and their cost.
//
//	cd deploy/e2e && go test -count=1 -v -timeout 1h ./peers -peers.changes 10
//	go test -count=1 -v -timeout 1h ./peers -peers.runs 3 -peers.engine 'NAME=PROGRAM ARGUMENTS...'
//
// Another engine is any program that follows an API server and enforces policies in its network namespace. In
// its arguments $KUBECONFIG, $NODE and $CLUSTER_CIDR are replaced. For example, with kube-router on the PATH:
//
//	-peers.engine 'kube-router=kube-router --run-router=false --run-service-proxy=false
//		--use-nftables-for-netpol --kubeconfig=$KUBECONFIG --hostname-override=$NODE'
//
// (in one line). Without -peers.engine only weft is measured.
//
// # Measurements
//
// The engines run in turns on the same node without rules. They follow an API server of negligible cost
// (frontends/testing/apitest) with 1,000 policies and 5,060 pods in 50 namespaces, 110 pods on the node. Six
// pods have a network namespace: four servers, an admitted client and a rejected one.
//
// The clients send a UDP packet to each server every few milliseconds, each in a new flow. A change begins
// with the write to the API, and is enforced when the first packet after the last wrong verdict is sent. CPU
// is the time of the process and its children until they are idle. Memory is the process's alone.
//
// # Errors
//
// An engine that ends, or does not enforce a policy within -peers.patience, fails the test. A slow engine
// does not.
package peers
