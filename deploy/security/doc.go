// Package security makes weft's seccomp and AppArmor profiles, one for each kind of container, and tests weft
// under them.
//
// In come the system calls (calls.go) and the files (apparmor.go) that each kind needs; out go
// seccomp/KIND.json and apparmor/weft, written by `make generate`. Read profile.go first.
//
// # Tests
//
// runc starts the chart's containers with containerd's own configuration. The story has traffic, changes,
// every verb of an operator, kill -9, a lost API server, and weft cleanup. The tests fail if a filter refuses
// a call that strace saw, or allows an unused call without a reason in calls.go; likewise for AppArmor's
// rules. testdata/probe tries calls that must be refused.
//
// # Limits
//
// The tests' kernel has neither AppArmor nor SELinux. The AppArmor profiles are compiled by apparmor_parser
// and compared with strace's files, but never enforced. Only amd64 is run, with runc 1.1.5 (Debian) and, with
// -runtime, runc 1.5.2. crun fails on a machine with both versions of control groups.
//
// A separate module keeps containerd's modules out of the product.
package security
