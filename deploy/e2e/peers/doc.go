// Package peers measures `weft run --network-policy` beside other engines of NetworkPolicy,
// on one node and in one run: how long it takes from the start of the process until 1,000
// policies are enforced, and from one changed policy until packets are judged by it, and what
// that costs.
//
//	cd deploy/e2e && go test -count=1 -v -timeout 1h ./peers -peers.changes 10
//	go test -count=1 -v -timeout 1h ./peers -peers.runs 3 -peers.engine 'NAME=PROGRAM ARGUMENTS...'
//
// Another engine is any program that follows an API server and enforces policies in its network
// namespace. In its arguments $KUBECONFIG, $NODE and $CLUSTER_CIDR are replaced. For example, with
// kube-router on the PATH:
//
//	-peers.engine 'kube-router=kube-router --run-router=false --run-service-proxy=false
//		--use-nftables-for-netpol --kubeconfig=$KUBECONFIG --hostname-override=$NODE'
//
// (in one line). Without -peers.engine only weft is measured.
//
// # What is measured, and how
//
// The engines run one after the other, in turns, on the same node without rules. They
// follow an API server that costs next to nothing (frontends/testing/apitest) with 1,000 policies and
// 5,060 pods in 50 namespaces, 110 of the pods on the node. Most pods exist only in the API; six have
// a namespace: four servers, a client that their policies admit and one that they do not.
//
// The clients send a UDP packet to each server every few milliseconds, each in a new flow.
// A change begins when it is written to the API. It is enforced with the first packet after
// the last one that was judged wrongly. So the figures do not depend on how an
// engine uses the kernel. CPU is that of the process and of the programs that it runs, until it is idle
// again. Memory is that of the process alone. Packets on pairs that a change does not concern
// are counted if they are lost or pass an isolated pod.
//
// # Errors
//
// An engine that ends, or does not enforce a policy within the time of -peers.patience, fails the test.
// A slow one does not.
package peers
