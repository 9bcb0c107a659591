// Package runtime is a container runtime for the nodes of a test: it serves CRI v1 over network namespaces
// and processes. Read runtime.go first.
//
// A pod sandbox is a network namespace with a point-to-point link to its node, and UTS and IPC namespaces. A
// container is a process tree in a PID and mount namespace, on a layer over the machine's own file system,
// with a program of package image and the default capabilities of other runtimes. There are no cgroups,
// limits or seccomp. A shared PID namespace is rejected.
//
// In come the kubelet's requests on a Unix socket. Out go processes, links and routes of the node's network
// namespace, log files in CRI's format, and an nftables table for host ports, which survives a flush of the
// ruleset. The process must be in the node's network namespace.
//
// # Concurrency
//
// One mutex guards the maps of sandboxes and containers and their mutable state. It is not held while a
// process starts or ends. The kubelet does one thing at a time with a pod.
//
// # Errors
//
// A missing object is gRPC's NotFound. A container that cannot start has exit status 128 and a message.
package runtime
