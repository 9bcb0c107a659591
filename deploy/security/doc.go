// Package security has weft's own profiles for seccomp and AppArmor, one for each kind of
// container, and the tests that weft lives under them.
//
// In come the system calls (calls.go) and the files (apparmor.go) that each kind needs; out go
// seccomp/KIND.json and apparmor/weft, which `make generate` writes. Read profile.go first.
//
// # How the profiles are known to be right
//
// The containers of the chart are started by runc with the configuration that containerd's own
// functions make of them, and live through a story: traffic, changes, every verb that an
// operator enters, kill -9, an API server that goes away, weft cleanup. strace notes each system
// call and each file. The tests fail if a filter refuses a call, if a filter allows a call
// that weft does not make and calls.go gives no reason for, and likewise for files and the
// rules of AppArmor. The same story is lived under containerd's default filter.
//
// What weft never does is tried by another program (testdata/probe), which must be refused.
//
// # What is not tested
//
// The kernel of the machines that run the tests has neither AppArmor nor SELinux. The AppArmor
// profiles are compiled by apparmor_parser and compared with the files that strace noted; they
// were never enforced. Only amd64 is run. The runtimes are runc 1.1.5 (Debian) and, with
// -runtime, runc 1.5.2; crun does not start on a machine with both versions of control groups.
//
// It is a module of its own, because containerd's modules are many.
package security
