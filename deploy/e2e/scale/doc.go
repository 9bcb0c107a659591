// Package scale measures `weft run`, and on request kube-proxy, on clusters of up to 100,000 endpoints: the
// start, changes of one endpoint, a rolling update, idling, and a restart.
//
//	cd deploy/e2e
//	go test -count=1 -v -timeout 3h ./scale -scale.sizes 10000x10,1x100000 -scale.duration 30s -scale.rest 12s
//	go test -count=1 -v ./scale -scale.sizes 1000x10 -scale.duration 5s
//	go test -count=1 -v -timeout 3h ./scale -scale.policies 100000x1000x10000 -scale.changes 100 -scale.rest 12s
//	go test -count=1 -v ./scale -scale.explain 10000x10
//	go test -count=1 -v -timeout 3h ./scale -scale.proxy weft,kube-proxy
//
// The proxy runs on its own node ([lab]). It follows an API server of negligible cost
// (frontends/testing/apitest). Package fleet has a real API server.
//
// # Measurements
//
// Time runs from the beginning of the write to the API to the kernel's notification of the commit with the
// new address (NFNLGRP_NFTABLES).
//
// A Service answers when a TCP connection to its ClusterIP reaches an endpoint. CPU is user and system time
// of the proxy and its child processes. Memory is the process's alone.
//
// The floor is the wall time for the same number of elements over a bare netlink socket in the same run.
//
// # NetworkPolicies
//
// TestScale ends with "weft run --network-policy" beside 1,000 Services, from the replayed API: the start,
// the memory, isolated changes and 1,000 pod events a second. Times come from weft's own histogram, so a
// quantile is the bound of a bucket. Metrics are read only before and after the changes, because an answer
// costs more than a change.
//
// # Against another commit
//
//	go test -count=1 -v -timeout 3h -run '^TestAgainst$' ./scale -scale.against HEAD~1 \
//		-scale.sizes 1000x10,10000x10 -scale.policies 20000x200x2000 -scale.rest 12s -scale.turns 12
//
// TestAgainst runs both wefts, each on its own node with its own API server. They make the same changes in
// turns: this one, the other, the other, this one. A turn is about twenty changes. A ratio is the median of
// the ratios of pairs of turns, so that other load affects both.
//
// # weft explain
//
// TestScale also measures "weft explain" on a node with as many Services and 1,000 policies that all select
// a pod of the node: the time of the process, and its cost to concurrent commits.
//
// # Output
//
// One line for benchstat per phase of each run, and at the end a Markdown table of the medians against
// weft's targets.
//
// # Errors
//
// An unfinished phase fails the test. A missed target does not, because machines differ.
package scale
