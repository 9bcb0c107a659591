// Package cluster runs a control plane for tests: one etcd, one
// kube-apiserver and the EndpointSlice controller, the real ones, as processes in the namespace of the caller,
// which must be private (ports are fixed). There is no scheduler, no kubelet and no other controller:
// Nodes and Pods are what the test writes, and so are the EndpointSlices of Services without a selector.
//
// The API server authenticates by client certificate and by service account
// token, never anonymously, and authorizes by RBAC, so that what a client may do is
// what the manifests in deploy/kubernetes give it.
//
// # Concurrency
//
// Starting, killing and stopping are for one goroutine; the rest is safe for concurrent use.
package cluster
