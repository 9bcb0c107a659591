// Package counting makes a copy of a ruleset that counts the ruleset's actions without performing them.
//
// [Tables] copies the tables of a file under other names, for "weft apply --stage". It does not compile.
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
// after it. Jumps, limits, quotas, logs and sets filled by packets stay, with their own copies. Rules of the
// copy cannot match the ruleset's marks. Flowtables, and objects other than counters, quotas or limits, are
// left out.
//
// # Errors
//
// The error names the unparsable rule, and wraps a *syntax.Error.
package counting
