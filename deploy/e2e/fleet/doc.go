// Package fleet measures the load of an API server's outage on the server: the nodes of a large cluster follow
// a real kube-apiserver with etcd ([cluster]), which is killed and restarted.
//
//	cd deploy/e2e && go test -count=1 -v -timeout 2h ./fleet -fleet.nodes 5000 -fleet.outage 60s -fleet.patience 20m
//
// The nodes run in one process (frontends/testing/apitest/fleet), each with the real code of frontends/source
// and four watches. For comparison, other nodes retry each watch by itself, in the end every 1.5 s to 3 s.
//
// # Measurements
//
// The test counts requests at the server, and refused connections while it does not run, in each second since
// the kill or the readiness.
//
// # Errors
//
// The test fails if a watch does not return, or if a node exceeds the backoff's attempts during the outage.
// Rates do not fail it, because machines differ.
package fleet
