// Package doctor is the command "weft doctor": it examines a node and prints each problem, its meaning, and
// a remedy.
//
// Input is the conditions of weft's processes, files of /proc and /sys, the ruleset of the kernel, answers
// of weft's socket, and TCP connections to endpoints. Output is findings. Read doctor.go first: it lists
// the checks, which are functions from a node (node.go) to findings.
//
// Only the conditions (package conditions) say whether weft is well: a condition that is not OK is an
// error. The other checks look at the host.
//
// The package does not change the node, and its requests are bounded in number and time. A slow check is
// reported as not examined, and does not delay the others.
//
// # Findings
//
// An error harms packets or publishers now. A warning may harm them later, or in some clusters only. A
// setting alone is a finding only if weft cannot work with it; otherwise the kernel's counters must show
// lost packets. The usual state of healthy nodes is never a finding.
//
// # Errors
//
// If a check cannot examine its subject, for example the ruleset without CAP_NET_ADMIN, it reports so in a
// finding.
//
// # Without procfs
//
// node.go parses counters of /proc/net itself: github.com/prometheus/procfs panics on a line with more
// numbers than names.
package doctor
