// Package eval computes what a ruleset does to a packet, as nf_tables in the kernel would.
// It is pure: it has no access to the kernel and does no I/O.
//
// What comes in are a [Ruleset] of compiled chains, rules and sets, a [Packet] with its
// interfaces and its connection, and a [Host] that knows routes and addresses. What goes out
// are the [Outcome]s of [Evaluate]: the rules that matched, in order, the elements that were found in
// sets, the verdict, and the packet as it continues. Read ruleset.go, packet.go and outcome.go
// first, then path.go (the order of the hooks) and machine.go (the rules of a chain).
//
// The package works on the expressions of rules, not on their text, so it can evaluate the
// rules of other programs too.
//
// # What cannot be decided
//
// The evaluator does not guess. Where a number is random, or a limit or quota has a state
// that is not known, the evaluation branches: there is one Outcome for each possibility, with
// its probability if that is known. A random number with many results that is the key of a map
// with intervals has one Outcome for each interval. Where an input or an expression is not known, the Outcome
// ends with the verdict Undecided, and says why.
//
// Known are: comparisons, ranges, bit operations, byte orders, payloads of the network and
// transport header, lookups in sets and maps, elements that packets add, numgen, jhash and
// symhash, limit, quota, counter, log, reject, dnat to one address and port, snat to one address,
// masquerade, redirect, named counters, the type of an address and the reverse path in fib, and most keys of meta. Of
// ct there are state, status, mark, direction, and the addresses and ports of both directions.
// Of iptables-nft there are the matches comment, addrtype, conntrack (states), tcp, udp, multiport, mark,
// statistic and limit, and the targets LOG, MARK, REJECT, DNAT, SNAT, MASQUERADE and REDIRECT.
// Only tables of the families ip, ip6, inet and bridge are evaluated; the hooks ingress and egress are
// not. What a bridge carries is a frame without a tag, whose connection the family bridge does not know.
//
// A set is assumed to have room for what a packet adds. A translation is assumed to be possible:
// if another connection already has the translated addresses and ports, the kernel chooses
// another source port.
//
// # Concurrency
//
// Functions keep no state and do not change their arguments.
package eval
