// Package vm runs a shell script under a chosen Linux kernel, in a virtual machine that qemu-system-x86_64
// emulates in software, without KVM, disk or network.
//
// In come a Kernel (an unpacked package of Debian, see package debian), files and a script; out go the
// script's output and exit status. Read machine.go first.
//
// The machine's root is a file system in memory with busybox at /bin, the kernel's modules, which load on
// demand, and the given files. The script runs as root, with /proc, /sys, /dev, /run and /tmp mounted and
// loopback up. It may set the machine's clock.
//
// # Errors
//
// Run returns an error if the script did not end, with the last lines of the kernel's console. The exit status
// is not an error.
package vm
