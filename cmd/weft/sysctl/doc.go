// Package sysctl applies kube-proxy's settings of connection tracking ([Conntrack]), and sets the
// process's OOM score.
//
// The package writes only settings in /proc/sys/net/netfilter, the hash size of nf_conntrack, and
// /proc/self/oom_score_adj. It keeps right values, so that an unprivileged process can run after a
// privileged one (weft run --init-only).
//
// # Errors
//
// Run waits for nf_conntrack. A failed write, for example to a read-only /proc/sys or outside the
// initial network namespace, is a warning.
package sysctl
