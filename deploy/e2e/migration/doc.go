// Package migration takes the nodes of a cluster from kube-proxy to weft and back with "weft migrate", and from an
// earlier version of weft to this one and back, under traffic.
//
//	cd deploy/e2e
//	go test -count=1 -v -timeout 1h -run '^TestMigration$' ./migration -migration.stale 1s -migration.modes nftables,iptables-nft,iptables-legacy
//	go test -count=1 -v -timeout 1h -run '^TestUpgrade' ./migration -migration.stale 1s -migration.unavailable 10%
//
// A world is a network of namespaces (package lab) with a whole control plane (package cluster) and three nodes,
// on each of which the real kubelet (cmd/node) runs what the real DaemonSets say: kube-proxy as
// kubeadm installs it, and weft of deploy/kubernetes/migration. Labels, affinities, probes, grace periods and
// credentials are those of the manifests.
//
// Traffic is new connections of TCP and UDP of both families, from pods, and from outside to NodePorts. Meanwhile the
// endpoints of the Service change twice a second. A connection that fails, or whose first packet the kernel sends again, is a
// failure; so is one that begins a second after its endpoint left the Service. A question of UDP is asked again
// once, because an answer that is under way when its endpoint leaves is lost with every proxy.
//
// # Versions
//
// The earlier weft is built from the commit that main_test.go names, in git, and its DaemonSets are those of its own
// manifests. While no weft is ready on a node its rules stay as they are: that time does not count in the
// second within which a pod that left must not be chosen (absence_test.go). A publisher of the earlier version stays
// connected all the time (third_test.go). What is stored and what is written to the kernel is looked at without traffic, on
// a host without a cluster (state_test.go).
package migration
