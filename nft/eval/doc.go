// Package eval computes the effect of a ruleset on a packet, as nf_tables in the kernel would. It does
// no I/O.
//
// [Evaluate] takes a [Ruleset], a [Packet] and a [Host] with routes and addresses. It returns [Outcome]s: the
// matching rules in order, the elements found in sets, the verdict, and the resulting packet. Read
// ruleset.go first, then path.go and machine.go.
//
// # Undecided evaluations
//
// At a random number, or a limit or quota with unknown state, the evaluation branches: each result has one
// Outcome, with its probability if known. At an unknown input or expression, the Outcome is Undecided.
//
// The evaluator knows comparisons, ranges, bit operations, byte orders, payloads of the network and
// transport header, sets and maps, elements added by packets, numgen, jhash, symhash, limit, quota,
// counter, log, reject, notrack, dnat to one address and port, snat to one address, masquerade, redirect,
// named counters, address type and reverse path of fib, and most keys of meta. Of ct it knows state,
// status, mark, direction, and the addresses and ports of both directions. Of iptables-nft it knows the
// matches and targets of xt.go. It evaluates the families ip, ip6, inet and bridge, without ingress and
// egress. Frames in family bridge have no tag and no connection.
//
// Sets are assumed to have room for new elements, and translations to be possible.
//
// # Concurrency
//
// Functions keep no state. They change no argument except the budget of EvaluateChain.
package eval
