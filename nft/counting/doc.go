// Package counting makes a copy of a ruleset that counts the ruleset's actions without performing them.
//
// [Tables] copies the tables of a file under other names, for "weft apply --stage". The package does not
// compile, and does not know the ruleset in force.
//
// # Copied rules
//
// If a rule would end a packet's way through the chain, or change the packet, the copy counts:
//
//	accept, drop, reject, queue, NAT, fwd, synproxy   counter accept
//	policy drop                                       policy accept, and a rule that counts at the end
//	accept and drop in verdict maps                   goto a chain with counter accept
//	set of marks, headers and other fields; tproxy,   left out
//	dup, notrack, flow add, reset, ct helper and timeout, secmark
//
// An accept ends only the base chain of the copy: a packet dropped by the ruleset does not reach the rules
// after it. Jumps, limits, quotas, logs and sets filled by packets are unchanged, with their own copies. In
// the copy, a rule cannot match a mark set by an earlier rule of the ruleset.
//
// Flowtables, and objects other than counters, quotas or limits, are left out, because the copy does not
// use them. A comment describes the skipped actions of a rule.
//
// # Errors
//
// The error names the unparsable rule, and wraps a *syntax.Error.
package counting
