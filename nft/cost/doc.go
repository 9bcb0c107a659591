// Package cost estimates the cost of a ruleset in the kernel: its memory, the time of a packet in a
// rule, and the time of a transaction. The estimates follow the structs and loops of Linux 5.10 to
// 6.18, within a factor of two of BenchmarkMemory, BenchmarkPacket, BenchmarkConnections and
// BenchmarkTransaction on an idle machine.
//
// The package does no I/O. Memory for each CPU is estimated with runtime.NumCPU.
package cost
