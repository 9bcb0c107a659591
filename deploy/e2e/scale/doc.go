// Package scale measures `weft run`, and on request kube-proxy, on clusters of up to 100,000 endpoints: the
// time and cost until every Service answers, until one changed endpoint is in the kernel, during a rolling
// update, while idle, and after a restart.
//
//	cd deploy/e2e
//	go test -count=1 -v -timeout 3h ./scale -scale.sizes 10000x10,1x100000 -scale.duration 30s -scale.rest 12s
//	go test -count=1 -v ./scale -scale.sizes 1000x10 -scale.duration 5s
//	go test -count=1 -v -timeout 3h ./scale -scale.policies 100000x1000x10000 -scale.changes 100 -scale.rest 12s
//	go test -count=1 -v ./scale -scale.explain 10000x10
//	go test -count=1 -v -timeout 3h ./scale -scale.api replay,real -scale.proxy weft,kube-proxy
//
// The proxy is the real program on its own node ([lab]). It follows a real kube-apiserver and etcd
// ([cluster]), or "replay", an API server of negligible cost (frontends/testing/apitest). Both are written
// to through the same client.
//
// # Measurements
//
// Time runs from the beginning of the write to the API to the kernel's notification of the commit with the
// new address (NFNLGRP_NFTABLES). There is no polling: the proxy pays only for the kernel's notification. A
// Service answers when a TCP connection to its ClusterIP reaches one of its endpoints. CPU includes the
// proxy's process and the programs it runs (user and system, including the kernel's work in their system
// calls). Memory is the process's alone.
//
// With a real API server the time of a change runs from its notification to another client, to exclude the
// API server. The output also has the time from the write.
//
// The floor is the wall time, which equals CPU time here, for the same number of elements, and for one,
// over a bare netlink socket in the same run.
//
// # NetworkPolicies
//
// At its end TestScale measures "weft run --network-policy" with as many pods, namespaces and policies
// beside 1,000 Services, from the replayed API: the start, the memory, isolated changes and 1,000 pod
// events a second. Times come from weft's own histogram, from the arrival of an event to the acknowledged
// commit: a quantile is the bound of a bucket. Metrics are read only before and after the changes, because
// an answer costs more than a change. weft enforces once its /readyz says so.
//
// # Against an earlier commit
//
//	go test -count=1 -v -timeout 3h -run '^TestAgainst$' ./scale -scale.against HEAD~1 \
//		-scale.sizes 1000x10,10000x10 -scale.policies 20000x200x2000 -scale.rest 12s -scale.turns 12
//
// TestAgainst builds the weft of another commit and runs both all the time, each on its own node with its
// own API server. The same changes are made in turns: this one, the other, the other, this one. A turn is
// about twenty changes; its CPU is the process's from before the first to after the last. A ratio is the
// median of the ratios of pairs of turns, so that other load of the machine affects both. Flags unknown to
// one of the two are left out, and a weft without network policies has no figure for pods. Pods come from
// the replayed API.
//
// # weft explain
//
// Then TestScale measures "weft explain" on a node with as many Services and 1,000 policies that all select
// one of its pods: the time of the whole process, and its cost to concurrent commits.
//
// # Output
//
// One line for benchstat per phase of each run, and at the end a Markdown table of the medians of all runs
// against weft's targets.
//
// # Errors
//
// An unfinished phase fails the test. A missed target does not, because machines differ; the table shows
// it.
package scale
