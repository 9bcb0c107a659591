// Package differential measures weft against the kube-proxy that it replaces:
// the same objects, the same packets, and what is seen of them must be the same.
//
//	cd deploy/e2e && go test -count=1 -v ./differential
//	go test -count=1 -v -run 'TestDifferential/nodeport' ./differential
//
// One API server (package cluster) serves two sides. A side is a network of
// namespaces (package lab) with addresses of its own making: those of the
// other side too, which never meets it. On node-1 of one side runs the real kube-proxy in
// nftables mode, built from the module of the API server, on node-1 of the other
// weft. node-2 has no proxy: its pods are endpoints elsewhere.
//
// A check is a list of steps: objects are written, a fence (a Service that is
// written last) says on each side that they are in force, and probes say who
// answers whom, as whom, or how it is refused. Every probe states what is
// expected. kube-proxy must do that, or the check is wrong; weft must do it, or there is a
// difference; so every difference is a failure, but for those in the table of
// deliberate ones, which name their reason. Groups of checks run at once, under one configuration of both.
//
// The rest are stories of their own: health servers, metrics, and the
// replacement of a running kube-proxy by weft and back, under traffic.
package differential
