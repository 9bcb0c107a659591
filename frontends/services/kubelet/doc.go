// Package kubelet follows the readiness of this node's pods at the kubelet's Pods API (KEP-4188), before the
// API server has it, and without the API server.
//
// It takes the stream of the kubelet's socket, and changes the pods of package model. These only keep
// endpoints from the state that the EndpointSlice says. Only changes of readiness reach the model.
//
// The kubelet may lose or swap events, so while it holds out endpoints, its pods are listed again regularly.
// After a disconnection its word counts for a few seconds, then the API decides alone. So it does while the
// kubelet starts.
//
// # Concurrency
//
// Run has one goroutine for the stream, which alone calls Config.Deliver, and one that limits its time.
//
// # Errors
//
// Run logs errors and connects again.
package kubelet
