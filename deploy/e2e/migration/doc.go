// Package migration takes the nodes of a cluster from kube-proxy to weft and back with "weft migrate", and
// from an earlier version of weft to this one and back, under traffic.
//
//	cd deploy/e2e
//	go test -count=1 -v -timeout 1h -run '^TestMigration$' ./migration -migration.stale 1s -migration.modes nftables,iptables-nft,iptables-legacy
//	go test -count=1 -v -timeout 1h -run '^TestUpgrade' ./migration -migration.stale 1s -migration.unavailable 10%
//
// A world is a network of namespaces (package lab) with a control plane (package cluster) and three nodes.
// The real kubelet (cmd/node) runs kube-proxy as installed by kubeadm, and weft of
// deploy/kubernetes/migration.
//
// Traffic is new TCP and UDP connections of both families, from pods, and from outside to NodePorts, while
// the Service's endpoints change. A connection fails if the kernel retransmits its first packet, or if it
// begins a second after its endpoint left the Service. With every proxy a UDP answer is lost if its endpoint
// leaves, so a question is asked twice.
//
// # Versions
//
// main_test.go names the commit of the earlier weft, which runs under its own manifests. Rules stay while a
// node has no ready weft; that time does not count in the second for a stale endpoint (absence_test.go). A
// publisher of the earlier version stays connected (third_test.go). state_test.go compares stored state and
// kernel writes.
package migration
