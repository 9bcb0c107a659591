// Package takeover removes the rules that kube-proxy left on a node: tables of mode nftables, and
// iptables chains of modes iptables (iptables-nft over netlink, legacy iptables with its programs)
// and ipvs, whose virtual servers, addresses and sets package ipvs removes.
//
// After mode ipvs [Remove] is called until the connections of IPVS have ended; the iptables chains, which may
// accept their packets, stay so long.
//
// As in "kube-proxy --cleanup", chains are removed by their names, with jumps from base chains.
// Chains of other programs and of the kubelet stay (KUBE-FIREWALL, KUBE-KUBELET-CANARY,
// KUBE-IPTABLES-HINT, KUBE-MARK-DROP).
//
// New connections need rules, so Remove rejects a node without weft's rules.
//
// # Errors
//
// The [Report] is valid even with an error.
package takeover
