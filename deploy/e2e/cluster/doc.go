// Package cluster runs a control plane for tests: the real etcd, kube-apiserver and
// kube-controller-manager, as processes in the namespace of the caller, which must be private
// (ports are fixed). In most tests the EndpointSlice controller is the only one that
// runs, and there is no scheduler and no kubelet: Nodes and Pods are what the test writes, and so
// are the EndpointSlices of Services without a selector. A full cluster has the
// controllers of a cluster that runs Pods, kube-scheduler, and CoreDNS.
//
// The API server authenticates by client certificate and by service account
// token, never anonymously, and authorizes by RBAC, so that what a client may do is
// what the manifests in deploy/kubernetes give it.
//
// # Concurrency
//
// Starting, killing and stopping are for one goroutine; the rest is safe for concurrent use.
package cluster
