// Package doctor is the verb "weft doctor": it examines a node and prints what is wrong, what
// that means, and what to do.
//
// In come the conditions of weft's processes, the files of /proc and /sys, the ruleset of the
// kernel, the answers of weft's socket, and TCP connections to endpoints; out go findings
// (doctor.go). Whether weft is well only its conditions say (package conditions): they come
// first, and one that is not OK is an error. The other checks look at the host.
// Read doctor.go first: it lists the checks. Each is a function from a node, which has what
// several checks read (node.go), to findings. Checks of one subject share a file.
//
// The package changes nothing on the node. What it asks for is bounded, in number and in time:
// a check that does not end in time is reported as not examined, and the others are not delayed.
//
// # What is a finding
//
// An error harms packets or publishers now. A warning may harm them later, or harms
// something that not every cluster uses. What is usual on healthy nodes is not a finding: a
// setting alone is one only if weft cannot work with it; otherwise the kernel's counters have to
// show that packets were lost.
//
// # Errors
//
// What cannot be examined, such as the ruleset without CAP_NET_ADMIN, is a finding too: it
// says what was not examined.
package doctor
