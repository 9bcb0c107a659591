// Package node is a Kubernetes node for tests: the real kubelet, in this process, over a container runtime
// that makes pods of network namespaces and processes. Read node.go first.
//
// The kubelet is the released one with its own prober, mounter, volumes, status and event recorder. Because
// the nodes of a test share one machine, three parts are replaced: there are no cgroups (the container
// manager is the kubelet's own stub), the capacity comes from [Config] (instead of cadvisor), and processes
// keep their OOM score. Pods are not evicted, and images are not removed.
//
// A kubeconfig file, the name and addresses of the node, and a [Runtime] that serves CRI on a Unix socket
// come in. A Node object with its lease, the status and events of its pods, and the kubelet's HTTPS server
// on port 10250 of the node's addresses go out. Through it the API server reaches logs, exec, attach,
// port-forward and proxy. The certificate is self-signed and every client is admitted: keep the network
// private.
//
// The process must be in the network namespace of the node. [Isolate] gives it a mount and a UTS namespace.
//
// # Concurrency
//
// A process runs one node: the kubelet has global state (feature gates, metrics).
//
// # Errors
//
// [Run] returns why the start failed or the runtime ended. A kubelet that cannot go on ends the process, as
// on a real node; its log has the reason.
package node
