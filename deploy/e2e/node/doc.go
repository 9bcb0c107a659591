// Package node is a Kubernetes node for tests: the real kubelet, in this process, over a container runtime of
// network namespaces and processes. Read node.go first.
//
// Because the nodes of a test share one machine, three parts of the kubelet are replaced: the container
// manager is the kubelet's own stub without cgroups, the capacity comes from [Config], and processes keep
// their OOM score. Pods are not evicted, and images are not removed.
//
// In come a kubeconfig file, the name and addresses of the node, and a [Runtime] that serves CRI on a Unix
// socket. Out go a Node object with its lease, the status and events of pods, and the kubelet's HTTPS server
// on port 10250. Its certificate is self-signed and every client is admitted: keep the network private.
//
// The process must be in the network namespace of the node. [Isolate] gives it a mount and a UTS namespace.
//
// # Concurrency
//
// A process runs one node: the kubelet has global state (feature gates, metrics).
//
// # Errors
//
// [Run] returns an error if the start fails or the runtime ends. A fatal error of the kubelet ends the
// process.
package node
