// Package lint finds rules without the effect intended by their author, mostly because of another party's
// rules.
//
// [Run] takes the ruleset of a network namespace (package eval) with the owners of rules. It returns
// [Finding]s, each with the cause, the remedy, and the rules of both parties. Read finding.go first, then
// lint.go.
//
// # Proof
//
// A finding about packets is never a guess. For an accepting rule, package lint makes a packet that meets
// the conditions of the rule and of the rules before it (witness.go), and package eval runs the chains. If
// the rule accepts the packet and the other party's chain drops it, the packet is the example. Undecided
// evaluations are not findings: package lint overlooks problems, but does not report false ones.
//
// Comparisons, not packets, prove that a rule never matches (solve.go): two comparisons exclude each other,
// and the field does not change between them. Unknown expressions may change every field.
//
// # Silencing
//
// A rule with the comment "weft:ignore" has no findings, and a rule with "weft:ignore=ID" has no findings
// with this ID. Either rule may have the comment.
//
// # Bounds
//
// The constants of lint.go bound the work. Findings beyond the bounds are not reported.
package lint
