// Package faults has only tests. They seed faults, one after the other, and look whether weft doctor finds
// each, and whether weft's commands show the cause.
//
// # TestFaults
//
// Network namespaces are a node with a real "weft run", a pod that serves a Service, and a client outside.
// Faults are real: sysctls, rules, a full file system, a killed daemon. A finding of the right check must
// name the fault and its remedy. Doctor has no findings before the first fault and after each is undone.
//
// The test prints doctor's time for each fault. Read faults_linux_test.go first, then the table in
// table_test.go.
//
// # TestReader
//
// Network namespaces are two nodes with pods, a router and a client outside. With each of ten faults a real
// connection fails. The test enters at most three commands from the documentation until one prints the
// cause; it mends the cause, and the connection passes. The transcript is ten-faults.md in the directory
// WEFT_PAGES. Read reader_linux_test.go first, then readerfaults_test.go.
//
// # Limits
//
// A network namespace cannot have limits of the whole machine, such as the size of the table of neighbours,
// or a kernel without owners of tables. TestHostFaults of package doctor covers faults in files of /proc.
package faults
