//go:build linux && amd64

// Command clockshift runs a program whose wall clock is set at will, as no namespace can and
// without a change of the machine's clock.
//
//	clockshift FILE PROGRAM [ARGUMENT...]
//
// FILE has the difference from the machine's clock, such as "-5h"; it may be replaced at any
// time. All other clocks are the machine's. Signals go to the program, and its exit code is that
// of clockshift.
//
// A program reads the clock in the vDSO, without a system call. Its address is in the auxiliary
// vector, from which clockshift removes it (vdso.go), as a debugger may at an exec. Then each
// look at the clock is a system call, which the kernel hands to clockshift (seccomp.go), and
// clockshift answers. Read main.go first. Linux on amd64 only.
package main
