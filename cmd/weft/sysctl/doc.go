// Package sysctl applies kube-proxy's settings of connection tracking to the kernel, and sets the
// process's OOM score.
//
// [Run] writes the settings ([Conntrack]) and logs changes. Read run.go first.
//
// The package writes only settings in /proc/sys/net/netfilter, the hash size of nf_conntrack, and
// /proc/self/oom_score_adj, and not forwarding, the routing of loopback addresses, or bridges. It
// keeps right values, so that an unprivileged process can run after a privileged one (weft run
// --init-only).
//
// # Errors
//
// weft forwards packets without these settings. Run waits for nf_conntrack, which the kernel loads
// with the first NAT chain. A failed write, for example in a container with a read-only /proc/sys or
// outside the initial network namespace, is a warning with the file and the value.
package sysctl
