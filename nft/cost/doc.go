// Package cost estimates what a ruleset costs the kernel: its memory, and the work for a
// packet that runs a rule. The estimates decide on limits, so they follow the structs of
// the kernel (Linux 5.10 to 6.18) and not its every byte: BenchmarkMemory compares them with what
// the kernel allocates, within a factor of two.
//
// The package does no I/O. What is allocated for each CPU is estimated with
// runtime.NumCPU.
package cost
