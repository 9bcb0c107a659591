// Package sysctl applies kube-proxy's settings of connection tracking to the kernel, and
// sets the OOM score of the process.
//
// [Run] writes the settings ([Conntrack]) to files under /proc/sys and /sys, and logs each
// change. Read run.go first.
//
// The package writes only the files in /proc/sys/net/netfilter that the settings name,
// the hash size of nf_conntrack, and /proc/self/oom_score_adj. It does not touch
// forwarding, the routing of loopback addresses, or bridges. It does not write a value
// that is right already, so that a process without the right to write can run after
// another process has done so (weft run --init-only).
//
// # Errors
//
// weft forwards packets without any of this. If nf_conntrack is not loaded yet, Run waits
// for it: the kernel loads it with the first NAT chain. A value that cannot be written,
// for example in a container with a read-only /proc/sys or outside the initial network
// namespace, is a warning that names the file and the value.
package sysctl
