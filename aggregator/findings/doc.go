// Package findings lints the rules of all fragments, together with the rules of other programs, after
// commits (package lint).
//
// Merged tables and the kernel's tables of other programs come in. The current findings of each fragment
// ([Inspector.Of]) go out, and a call for each new or resolved finding. Read inspector.go first.
//
// # Cost
//
// An [Inspector] has its own goroutine: commits do not wait for it. It looks after a commit of more than
// elements, and then rests 50 times as long as the look took, to use at most 2 % of a CPU.
//
// # Who sees what
//
// A finding shown to a publisher names the other party, its table and chain. It includes the text of rules
// only if they belong to the publisher or to no fragment.
package findings
