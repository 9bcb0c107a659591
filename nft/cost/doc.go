// Package cost estimates what a ruleset costs the kernel: its memory, the time of a packet that
// runs a rule, and the time of a transaction. The estimates decide on limits, so they follow the
// structs and loops of the kernel (Linux 5.10 to 6.18) and not its every byte: BenchmarkMemory,
// BenchmarkPacket, BenchmarkConnections and BenchmarkTransaction compare them with what is measured,
// within a factor of two on an idle machine.
//
// The package does no I/O. What is allocated for each CPU is estimated with
// runtime.NumCPU.
package cost
