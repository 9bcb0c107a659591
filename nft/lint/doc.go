// Package lint finds rules that do not do what their author must have meant, above all because of
// the rules of somebody else: two programs that load rules into one kernel know nothing of each other.
//
// In comes the ruleset of a network namespace, as package eval has it, with the owners of rules; out
// come [Finding]s, each of which has the cause, the remedy, and the rules of both parties. [Run] is pure. Read
// finding.go first, then lint.go.
//
// # How a finding is proved
//
// A finding about packets is never a guess. For a rule that accepts, package lint makes a packet that meets
// the conditions of the rule and of the rules that lead to it (witness.go), and package eval runs the
// chains: the finding exists if the packet is really accepted by the rule and really dropped by the
// other party's chain, and the packet is the example that the finding shows. Where the rule leaves something
// open, the packet is the first of a TCP connection between addresses and ports that rules seldom name.
// What the evaluator cannot decide is not a finding. So package lint overlooks things, and
// reports nothing that is not there.
//
// That a rule never matches is not shown by packets but by its comparisons (solve.go): two of them exclude each other, and nothing between
// them changes what they compare. An expression that package lint does not know may have changed everything.
//
// # How to silence one
//
// A rule with the comment "weft:ignore" has no findings, and one with "weft:ignore=ID" none of
// that ID. It is enough that one of the two rules has it.
//
// # Bounds
//
// The work is bounded for any ruleset: see the constants of lint.go. What is left out is not reported.
package lint
