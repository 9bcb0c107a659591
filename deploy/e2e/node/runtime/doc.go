// Package runtime is a container runtime for the nodes of a test: it serves CRI v1 over network namespaces and processes. Read
// runtime.go first.
//
// A pod sandbox is a network namespace with a point-to-point link to its node, and UTS and IPC namespaces. A
// container is a process tree in a PID and mount namespace of its own, whose root is the machine's own file system under a layer
// for what the container writes. Its program comes from package image. Its capabilities are those that other runtimes give by default, with
// those that the pod adds and without those that it drops. There are no cgroups, no limits and no seccomp. A pod that shares a PID
// namespace is rejected.
//
// In come the kubelet's requests on a Unix socket. Out go processes, links and routes of the node's network
// namespace, in which the process must be, log files in CRI's format, and an nftables table for host ports, which stays when the
// ruleset is flushed.
//
// # Concurrency
//
// One mutex guards the maps of sandboxes and containers and what can change in them. It is not held while a
// process is started or ended. The kubelet does one thing at a time with a pod.
//
// # Errors
//
// gRPC's NotFound is returned for what does not exist. Containers that could not be started have exit status 128 and a message.
package runtime
