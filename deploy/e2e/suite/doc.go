// Package suite is how a test binary of the end-to-end tests starts: it builds the
// programs that it runs, and then runs itself again in network, mount and PID
// namespaces of its own (and a user namespace where it is not root), so that nothing
// reaches the machine's own network and nothing outlives it.
//
// # Errors
//
// What is missing on the machine skips all tests, and fails them where CI=true.
package suite
