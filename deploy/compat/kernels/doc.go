// Package kernels tests weft on older and newer kernels of Debian, in virtual machines (package vm). It prints
// a table:
//
//	cd deploy/compat && go test -count=1 -v -timeout 2h ./kernels [-args -kernels.suites bookworm,trixie]
//
// Each kernel runs the tests of the packages that talk to the kernel, and "weft demo". programs.go lists the
// tests, and the omitted tests that take too long in software emulation. On a kernel before 5.13 weft must
// refuse to start.
package kernels
