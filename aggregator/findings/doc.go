// Package findings lints the rules of all fragments, together with the rules of other programs, after
// commits (package lint).
//
// Merged tables and the kernel's tables of other programs come in. The findings of each fragment go out,
// and a call for each new or resolved finding.
//
// An [Inspector] has its own goroutine (package retry). After a look it rests 50 times as long, to use at
// most 2 % of a CPU. A failed look is repeated.
//
// A finding shown to a publisher names the other party, its table and chain. It includes the text of rules
// only if they belong to the publisher or to no fragment.
package findings
