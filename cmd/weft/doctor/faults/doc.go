// Package faults has only tests: they seed faults, and look whether weft doctor finds each.
//
// # TestFaults
//
// Network namespaces are a node with a real "weft run", a pod that serves a Service, and a client
// outside. A finding of the right check must name the fault and its remedy. Doctor has no findings
// before the first fault and after each is undone.
//
// # TestReader
//
// With each of ten faults a real connection fails. The test enters at most three commands from the
// documentation until one prints the cause, and mends it. The transcript is ten-faults.md in the
// directory WEFT_PAGES.
//
// # Limits
//
// A network namespace cannot have limits of the whole machine. TestHostFaults of package doctor
// covers faults in files of /proc.
package faults
