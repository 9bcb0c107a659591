// Package event reports Kubernetes events of this node's proxy.
//
// It drops events if the API server does not accept them in time.
//
// # Concurrency
//
// Node, Condition, Service and Object do not block, and may be called under any lock. Call Run once.
package event
