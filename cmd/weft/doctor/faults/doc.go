// Package faults has only tests. They seed faults, one after the other, and look whether weft doctor finds
// each, and whether weft's commands show the cause.
//
// # TestFaults
//
// A set of network namespaces is a node with a real "weft run", a pod that serves a Service, and a client
// outside. Faults are real: sysctls, rules, a full file system, a killed daemon. A fault is found if a
// finding of the right check names it and its remedy. The node is healthy before the first fault and after
// each is undone: doctor has no findings.
//
// The test prints a line for each fault, with the time of doctor. Read faults_linux_test.go first, then the
// table of faults in table_test.go.
//
// # TestReader
//
// Network namespaces are two nodes with pods, a router and a client outside. With each of ten faults a real
// connection fails. The test enters at most three commands from the documentation until one prints the
// cause; it mends the cause, and the connection passes. deploy/docs/ten-faults.md is the transcript.
// Without -faults.transcript the test compares its commands and causes with that document. Read
// reader_linux_test.go first, then readerfaults_test.go.
//
// # Limits
//
// A network namespace cannot have limits of the whole machine, such as the size of the table of neighbours,
// or a kernel without owners of tables. TestHostFaults of package doctor covers faults in files of /proc.
package faults
