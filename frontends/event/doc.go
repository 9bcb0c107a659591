// Package event reports Kubernetes events: the start of this node's proxy, and problems of a Service,
// NetworkPolicy or Pod.
//
// It takes messages about objects and sends events to the API server. Read recorder.go. It drops events
// that the API server does not accept in time, so it never delays a caller. Without an API server, as
// with manifests, it has no effect.
//
// # Concurrency
//
// Node, Service and Object do not block, and may be called from any goroutine and under any lock. Call
// Run once.
package event
