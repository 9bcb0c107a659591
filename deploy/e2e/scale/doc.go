// Package scale measures `weft run`, and kube-proxy beside it when asked to, on clusters
// of up to 100,000 endpoints: how long it takes and what it costs until every Service answers, until
// one changed endpoint is in the kernel, during a rolling update, when nothing happens, and
// after a restart.
//
//	cd deploy/e2e
//	go test -count=1 -v -timeout 3h ./scale -scale.sizes 10000x10,1x100000 -scale.duration 30s -scale.rest 12s
//	go test -count=1 -v ./scale -scale.sizes 1000x10 -scale.duration 5s
//	go test -count=1 -v -timeout 3h ./scale -scale.policies 100000x1000x10000 -scale.changes 100 -scale.rest 12s
//	go test -count=1 -v ./scale -scale.explain 10000x10
//	go test -count=1 -v -timeout 3h ./scale -scale.api replay,real -scale.proxy weft,kube-proxy
//
// The proxy is the real program, on a node of its own ([lab]). What it follows is either
// a real kube-apiserver and etcd ([cluster]), or "replay", an API server that costs next to nothing
// (frontends/testing/apitest), so that it is not what is measured.
// Either is written to through the same client.
//
// # What is measured, and how
//
// Time runs from the beginning of the write to the API to the kernel's notification
// of the commit (NFNLGRP_NFTABLES) that has the new address in it; polling nothing, it costs the proxy
// nothing but the kernel's making of the notification. A Service answers when a TCP connection to its
// ClusterIP reaches one of its endpoints. CPU is that of the proxy's process and of the programs
// that it runs (user and system, the kernel's work in their system calls included); memory is the
// process's alone.
//
// With a real API server the time of a change runs from when another client is told of it,
// for the API server's part is not the proxy's; the lines have the time from the write too.
//
// The floor is the same number of elements, and one, over a bare netlink socket in the same run, in
// wall time, which is CPU time there.
//
// # NetworkPolicies
//
// At its end TestScale measures "weft run --network-policy" on so many pods, namespaces and
// policies beside 1,000 Services, from the replayed API: the start, the memory, isolated
// changes and 1,000 pod events a second. Times are weft's own, from the arrival of an event
// to the acknowledged commit, as its histogram has them: a quantile is the bound of a bucket. Metrics
// are read before the changes and after them, never between: an answer costs more than a change.
// weft enforces once its /readyz says so.
//
// # Against an earlier commit
//
//	go test -count=1 -v -timeout 3h -run '^TestAgainst$' ./scale -scale.against HEAD~1 \
//		-scale.sizes 1000x10,10000x10 -scale.policies 20000x200x2000 -scale.rest 12s -scale.turns 12
//
// TestAgainst builds the weft of another commit and runs both all the time, each on a node of its own with
// an API server of its own. The same changes are made in turns: this one, the other, the other, this one. A turn is
// some twenty changes; its CPU is that of the process from before the first to after the last. A ratio is the median of the
// ratios of pairs of turns, so that what else the machine does meets both. A flag that one of the
// two does not know is left out, and a weft without network policies has no figure of pods. Pods
// come from the replayed API.
//
// # weft explain
//
// Then TestScale measures "weft explain" on a node with so many Services and 1,000 policies, all
// of which select one of its pods: the time of the whole process, and what it costs commits that are
// made meanwhile.
//
// # Output
//
// Lines that benchstat reads, one for each phase of each run, and at the end a table in Markdown
// with the medians of all runs against what weft is held to.
//
// # Errors
//
// A phase that does not come to its end fails the test. A figure that is not reached does
// not: machines differ, and the table shows it.
package scale
