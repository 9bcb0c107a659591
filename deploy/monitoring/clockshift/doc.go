//go:build linux && amd64

// Command clockshift runs a program with a different wall clock, without a change of the machine's clock.
//
//	clockshift FILE PROGRAM [ARGUMENT...]
//
// FILE has the difference from the machine's clock, such as "-5h"; it may be replaced at any time. All other
// clocks are the machine's. Signals go to the program, and clockshift exits with its code.
//
// clockshift removes the vDSO's address from the auxiliary vector (vdso.go). Then each read of a clock is a
// system call, and the kernel hands clock_gettime(CLOCK_REALTIME) to clockshift (seccomp.go). Read main.go
// first.
package main
