// Package event tells users of the cluster, as Kubernetes events on the objects
// themselves, what they should hear of: that this node's proxy started, and what
// is wrong with a Service.
//
// It decides nothing and delays nobody: what the API server does not take in
// time is dropped. Without an API server, as with manifests, it does nothing.
//
// # Concurrency
//
// Node and Service can be called at any time, from any goroutine and under any
// lock: they do not block. A Recorder is run once, by Run.
package event
