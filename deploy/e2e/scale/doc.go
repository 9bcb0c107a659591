// Package scale measures `weft run`, and kube-proxy beside it when asked to, on clusters
// of up to 100,000 endpoints: how long it takes and what it costs until every Service answers, until
// one changed endpoint is in the kernel, during a rolling update, when nothing happens, and
// after a restart.
//
//	make bench-scale
//	make bench-scale SIZES=1000x10 DURATION=5s
//	make bench-scale SIZES=100x10 POLICIES=100000x1000x10000
//	make bench-scale SIZES= POLICIES= EXPLAIN=10000x10
//	make bench-scale API=replay,real PROXY=weft,kube-proxy TABLE=deploy/docs/performance.md
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
//	make bench-against BASE=238984c
//	make bench-against BASE=HEAD~1 SIZES=1000x10 API=real
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
