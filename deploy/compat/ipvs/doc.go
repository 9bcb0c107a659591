// Package ipvs takes a node from kube-proxy in mode ipvs to weft and back, in a virtual machine (package vm):
//
//	cd deploy/compat && go test -count=1 -v -timeout 1h ./ipvs [-args -ipvs.suites bookworm]
//
// The machine runs the test TestStory of cmd/weft/takeover/ipvs with weft and Kubernetes' kube-proxy, of the
// module deploy/compat/kubeproxy. It needs iptables and ipset of this machine.
package ipvs
