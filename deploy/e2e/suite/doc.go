// Package suite starts the test binaries of the end-to-end tests: it builds their programs, and then runs the
// binary again in its own network, mount and PID namespaces (and a user namespace if it is not root).
//
// # Errors
//
// If a tool or privilege is missing, all tests are skipped, or fail if CI=true.
package suite
