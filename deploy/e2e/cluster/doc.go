// Package cluster runs etcd, kube-apiserver and kube-controller-manager as processes in the caller's
// namespace, which must be private because ports are fixed. By default only the EndpointSlice controller
// runs: tests write Nodes, Pods, and EndpointSlices of Services without a selector. A full cluster has the
// controllers for Pods, kube-scheduler and CoreDNS.
//
// The API server authenticates by client certificate and service account token, and authorizes by RBAC, so
// that clients have the rights of the manifests in deploy/kubernetes.
//
// # Concurrency
//
// Starting, killing and stopping are for one goroutine; the rest is safe for concurrent use.
package cluster
