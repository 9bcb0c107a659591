// Package faults has no code: its test seeds faults on a node, one after the other, and looks
// whether weft doctor finds each.
//
// The node is a set of network namespaces: the node with a real "weft run", a pod that serves a
// Service, and a client outside. Faults are real: sysctls, rules, a full file system, a killed daemon. A
// fault is found if a finding of the right check names it and its remedy. Before the first fault
// and after each one is undone, the node is healthy: doctor finds nothing.
//
// "make faults" prints a line for each fault, with the time that doctor took. Read
// faults_linux_test.go first, then table_test.go, which has the faults.
//
// What a network namespace cannot have is not here: limits of the whole machine, such as the size of
// the table of neighbours, and kernels without owners of tables. TestHostFaults of package doctor
// has those that are files in /proc.
package faults
