// Package cluster runs a control plane for tests: one etcd and one
// kube-apiserver, the real ones, as processes in the namespace of the caller,
// which must be private (ports are fixed). There is no scheduler, no kubelet and no controller
// manager: Nodes and EndpointSlices are what the test writes.
//
// The API server authenticates by client certificate and by service account
// token, never anonymously, and authorizes by RBAC, so that what a client may do is
// what the manifests in deploy/kubernetes give it.
//
// # Concurrency
//
// Starting, killing and stopping are for one goroutine; the rest is safe for concurrent use.
package cluster
