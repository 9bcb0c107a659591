// Package health answers health checks over HTTP, with the paths and the bodies of
// kube-proxy 1.36, which load balancers and monitoring already read.
//
// In come commits and the state of the node; out go /healthz and /livez (Proxy), and one
// HTTP server for each Service with a healthCheckNodePort (Servers), which a load
// balancer asks whether this node has endpoints of the Service. Read proxy.go first. The
// package does not decide which endpoints a Service has.
//
// # What healthy means
//
// A node is unhealthy if a change has waited for its commit for ProxyConfig.Timeout.
// Before the first commit it is healthy if the rules from before a restart are in force.
// /healthz also returns 503 while load balancers should not send new traffic to the
// node: its object is missing or being deleted, or has the taint of the cluster
// autoscaler. /livez depends on none of this, because a restart would not help: it is 503
// only if another part of the process has failed.
//
// kube-proxy has one proxier for each IP family. weft commits both families at once, so
// here they have the same times.
//
// # Concurrency
//
// All methods are safe for concurrent use. Servers.Run is the one goroutine that opens
// and closes ports; nothing waits for it. Each open port has a goroutine that serves it,
// and Run returns after all of them have ended.
//
// # Errors
//
// A port that cannot be opened is logged, reported as an event, and tried again.
package health
