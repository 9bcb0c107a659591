// Package differential compares weft with the real kube-proxy: the same objects and packets must have the
// same effect.
//
//	cd deploy/e2e && go test -count=1 -v ./differential
//	go test -count=1 -v -run 'TestDifferential/nodeport' ./differential
//
// One API server (package cluster) serves two sides. A side is a separate network of namespaces (package
// lab); both use the same addresses. node-1 runs kube-proxy in nftables mode on one side, weft on the other.
// node-2 has only pods. TestDifferential compares with the current kube-proxy, TestEarlier with the one of the
// minor version before.
//
// A check writes objects, waits for a fence (a Service that is written last) on each side, and sends probes.
// Both proxies must produce each probe's expected result. The table of deliberate differences has a reason
// for each. Groups of checks run at once, under one configuration.
//
// Other tests cover health servers, metrics, and the replacement of a running kube-proxy under traffic.
package differential
