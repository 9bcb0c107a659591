// Package findings looks after commits whether the rules of the fragments, together and with those of other
// programs, do what they must mean, with package lint.
//
// In come the merged tables and what the kernel has of other programs; out goes the current list of findings of
// each fragment ([Inspector.Of]), and a call for each that appears or goes. Read inspector.go first.
//
// # Cost
//
// An [Inspector] has a goroutine of its own: no commit waits for it. It begins a look when a commit has changed
// more than elements, and rests after one for 50 times as long as it took, so that it takes at most 2 % of a
// CPU whatever there is.
//
// # Who sees what
//
// A finding that is shown to a publisher names the other party, its table and chain, but has the text of rules only
// if they are the publisher's own or no fragment's.
package findings
