// Package doctor is the command "weft doctor": it examines a node and prints each problem, its meaning, and
// a remedy.
//
// Input is the conditions of weft's processes, /proc and /sys, the ruleset, answers of weft's socket, and TCP
// connections to endpoints.
//
// A condition (package conditions) that is not OK is an error.
//
// The package does not change the node, and its requests are bounded in number and time.
//
// # Findings
//
// A setting alone is a finding only if weft cannot work with it; otherwise the kernel's counters must show
// lost packets.
//
// # Without procfs
//
// node.go parses counters of /proc/net itself: github.com/prometheus/procfs panics on a line with
// more numbers than names.
package doctor
