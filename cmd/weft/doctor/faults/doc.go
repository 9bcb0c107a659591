// Package faults has no code: its tests seed faults, one after the other, and look whether weft
// doctor finds each, and whether weft's commands show a reader the cause.
//
// # TestFaults
//
// The node is a set of network namespaces: the node with a real "weft run", a pod that serves a
// Service, and a client outside. Faults are real: sysctls, rules, a full file system, a killed daemon. A
// fault is found if a finding of the right check names it and its remedy. Before the first fault
// and after each one is undone, the node is healthy: doctor finds nothing.
//
// It prints a line for each fault, with the time that doctor took. Read
// faults_linux_test.go first, then table_test.go, which has the faults.
//
// # TestReader
//
// Here two nodes with pods, a router and a client outside are network namespaces. With each of ten
// faults a real connection fails. The test enters the commands that the documentation names, at
// most three, until one prints the cause; it mends that, and the connection passes. What it
// entered and saw is deploy/docs/ten-faults.md; without -faults.transcript the test compares
// the commands and causes with that document. Read reader_linux_test.go first, then
// readerfaults_test.go.
//
// # What is not here
//
// What a network namespace cannot have is not here: limits of the whole machine, such as the size of
// the table of neighbours, and kernels without owners of tables. TestHostFaults of package doctor
// has those that are files in /proc.
package faults
