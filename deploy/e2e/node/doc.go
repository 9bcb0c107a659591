// Package node is a Kubernetes node for tests: the real kubelet, in this process, over a container
// runtime that makes pods of network namespaces and processes. Read node.go first.
//
// The kubelet is the released one with its own prober, mounter, volumes, status and event recorder.
// So probes, hooks, grace periods, restarts, volumes and the downward API are not imitated. Three of its
// parts are replaced, because the nodes of a test share one machine: there are no cgroups (the container
// manager is the kubelet's own stub), the capacity is what [Config] says (in place of cadvisor), and
// processes keep their OOM score. Nothing is evicted, and no image is removed.
//
// What comes in: a kubeconfig file, the name and the addresses of the node, and a [Runtime] that serves CRI on a
// Unix socket. What goes out: a Node object with its lease, the status of its pods, their events, and
// the kubelet's own HTTPS server on port 10250 of the node's addresses, through which the API server reaches logs, exec,
// attach, port-forward and proxy. The certificate is self-signed and every client is admitted: keep the network private.
//
// The process must be in the network namespace of the node. [Isolate] gives it a mount and a UTS namespace.
//
// # Concurrency
//
// A process runs one node: the kubelet has global state (feature gates, metrics).
//
// # Errors
//
// [Run] returns what prevented the start, or why the runtime ended. If the kubelet itself cannot go on it ends the process, as it
// does on a real node; its log has the reason.
package node
