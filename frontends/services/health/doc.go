// Package health answers over HTTP how the node's Service proxy is, in the words
// of kube-proxy 1.36, which load balancers and monitoring already read.
//
// Proxy is the state of the whole: /healthz and /livez. Servers are one HTTP
// server for each Service with a healthCheckNodePort: a load balancer asks there
// whether this node has endpoints of the Service.
//
// # What healthy means
//
// A node is unhealthy once a change has waited for its commit for as long as
// ProxyConfig.Timeout. Before the first commit it counts as healthy: the rules of
// before a restart still work. /healthz also says 503 while the node should get no
// new traffic, as its object is missing or being deleted or has the taint of the
// cluster autoscaler; /livez does not, as a restart would not help there.
//
// kube-proxy has one proxier for each IP family. weft commits both families at
// once, so they have the same times here.
//
// # Concurrency
//
// Everything may be called from several goroutines. Servers.Run is the one
// goroutine that opens and closes ports; nothing waits for it. Each open port has
// a goroutine that serves it, and Run returns once all of them have ended.
package health
