// Package vm runs a shell script under a Linux kernel of its choice, in a virtual machine that
// QEMU emulates in software: no KVM, no disk, no network, so that it works wherever
// qemu-system-x86_64 does.
//
// What comes in is a Kernel (an unpacked package of Debian, see package debian), files and a
// script; what goes out is what the script printed and its exit status. Read machine.go first.
//
// The machine's root is a file system in memory with busybox at /bin, the kernel's modules, which
// load on demand, and the given files. The script runs as root, with /proc, /sys, /dev, /run and /tmp
// mounted and loopback up. The machine is stopped when the script ends or the context does. Its clock is its
// own: the script may set it.
//
// # Errors
//
// Run returns an error if the machine did not run the script to its end, with the last lines of
// the kernel's console. The exit status of the script is not an error.
package vm
