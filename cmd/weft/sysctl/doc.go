// Package sysctl brings the kernel's connection tracking, and the process's
// place in the OOM killer's order, to what kube-proxy's configuration says.
//
// The files below /proc/sys/net/netfilter that the settings name, the hash size
// of nf_conntrack and /proc/self/oom_score_adj are all that it ever writes: no
// forwarding, no routing of loopback addresses, no bridges. What has the wanted
// value already is not written, so a process without the right to write is fine
// once another one has done it (weft run --init-only).
//
// # Errors
//
// None of this keeps weft from forwarding. Where nf_conntrack is not loaded yet,
// Run waits for it: the kernel loads it with the first NAT chain. What cannot be
// written, as in a container where /proc/sys is read-only, or in a network
// namespace that is not the machine's first, is a warning that names the file
// and the value.
package sysctl
