// Package health answers HTTP health checks with kube-proxy 1.36's paths and bodies, for existing load
// balancers and monitoring.
//
// # Health
//
// A node is unhealthy if a change waits for its commit for ProxyConfig.Timeout. Before the first commit it is
// healthy if rules from before a restart are in force. /healthz also returns 503 while load balancers should
// avoid the node. /livez is 503 only if another part of the process failed.
//
// # Concurrency
//
// All methods are safe for concurrent use. Only Servers.Run opens and closes ports (package listen).
//
// # Errors
//
// A failed port is logged, reported as an event, and retried.
package health
