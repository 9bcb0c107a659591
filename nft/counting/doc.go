// Package counting makes a copy of a ruleset that counts what the ruleset would do, and does
// nothing.
//
// Tables of a file go in ([Tables]), and tables with other names come out, for "weft apply
// --stage". The package compiles nothing and does not know what is in force.
//
// # What becomes of a rule
//
// Where a rule would end a packet's way through the chain, or change the packet, the copy counts:
//
//	accept, drop, reject, queue, NAT, fwd, synproxy   counter accept
//	policy drop                                       policy accept, and a rule that counts at the end
//	accept and drop in verdict maps                   goto a chain with counter accept
//	set of marks, headers and other fields; tproxy,   left out
//	dup, notrack, flow add, reset, ct helper and timeout, secmark
//
// An accept ends the base chain of the copy, which no other table notices: what the
// ruleset would drop does not meet the rules after it. Jumps, limits, quotas, logs and sets that packets
// fill are as before, with copies of their own. A rule that matches a mark that an earlier rule
// of the ruleset would set does not match in the copy.
//
// Flowtables are left out, and so are objects that are not counters, quotas or limits, because
// nothing refers to them. A comment says what a rule would do.
//
// # Errors
//
// The error names the rule that cannot be parsed, and is a *syntax.Error inside.
package counting
