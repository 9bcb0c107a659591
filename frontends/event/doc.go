// Package event reports Kubernetes events: the start of this node's proxy, and problems of a Service,
// NetworkPolicy or Pod.
//
// It drops events if the API server does not accept them in time. Without an API server it has no effect.
//
// # Concurrency
//
// Node, Service and Object do not block, and may be called under any lock. Call Run once.
package event
