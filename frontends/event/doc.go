// Package event reports to the users of the cluster as Kubernetes events: that the proxy
// of this node started, and what is wrong with a Service, a NetworkPolicy or a Pod.
//
// In come messages about the Node or another object; out go events to the API server. Read
// recorder.go. The package drops events that the API server does not accept in time, so
// it never delays a caller. Without an API server, as with manifests, it does nothing.
//
// # Concurrency
//
// Node, Service and Object do not block, and may be called from any goroutine and under any
// lock. Run must be called once.
package event
