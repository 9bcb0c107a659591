// Package nritest is a container runtime for tests of NRI plugins, with the runtime's side of NRI as in containerd.
//
// Pods of Start are those that a new process reports.
//
// # Concurrency
//
// Start and End need one user at a time. RunPod is safe for concurrent use.
package nritest
