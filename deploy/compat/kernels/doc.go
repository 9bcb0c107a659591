// Package kernels tests weft on older and newer kernels of Debian, in virtual machines (package
// vm). It has only tests, which print a table:
//
//	cd deploy/compat && go test -count=1 -v -timeout 2h ./kernels [-args -kernels.suites bookworm,trixie]
//
// On each kernel run the tests of the packages that talk to the kernel, as programs of their own,
// and "weft demo" with its traffic. programs.go lists what runs, and what is left out because it takes too
// long in software emulation. On a kernel before 5.13 weft must refuse to start.
package kernels
