// Package fleet measures the load that an outage of the API server puts on it: the nodes of a
// large cluster follow a real kube-apiserver with etcd ([cluster]), which is killed and
// started again.
//
//	cd deploy/e2e && go test -count=1 -v -timeout 2h ./fleet -fleet.nodes 5000 -fleet.outage 60s -fleet.patience 20m
//
// The nodes run in one process (frontends/testing/apitest/fleet), each with the real code of
// frontends/source and four watches. In the same run, on the same API server, nodes retry as
// weft did at commit 238984c: each watch by itself, and every 1.5 s to 3 s in the end.
//
// # What is counted
//
// Requests that arrive at the server, and connections that are refused while it does not run,
// by the second. A second begins when the server is killed, or when it is ready again. Refused
// connections are attempts that arrive at a load balancer, or at the kernel of the server.
//
// # Errors
//
// The test fails if a watch does not come back, or if a node made more attempts than the
// backoff allows in the time that the outage took. Rates do not fail it: machines differ.
package fleet
