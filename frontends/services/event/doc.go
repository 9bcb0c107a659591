// Package event reports to the users of the cluster as Kubernetes events: that the proxy
// of this node started, and what is wrong with a Service.
//
// In come messages about the Node or a Service; out go events to the API server. Read
// recorder.go. The package drops events that the API server does not accept in time, so
// it never delays a caller. Without an API server, as with manifests, it does nothing.
//
// # Concurrency
//
// Node and Service do not block, and may be called from any goroutine and under any
// lock. Run must be called once.
package event
