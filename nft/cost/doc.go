// Package cost estimates the cost of a ruleset in the kernel: its memory, the time of a packet in a rule,
// and the time of a transaction. The estimates decide on limits, so they follow the structs and loops of
// the kernel (Linux 5.10 to 6.18), but not every byte. BenchmarkMemory, BenchmarkPacket,
// BenchmarkConnections and BenchmarkTransaction compare them with measurements, within a factor of two on
// an idle machine.
//
// The package does no I/O. Memory for each CPU is estimated with runtime.NumCPU.
package cost
