// Package event reports Kubernetes events: the start of this node's proxy, and problems of a Service,
// NetworkPolicy or Pod.
//
// It sends events to the API server, and drops them if it does not accept them in time. Without an API
// server, as with manifests, it has no effect.
//
// # Concurrency
//
// Node, Service and Object do not block, and may be called under any lock. Call Run once.
package event
