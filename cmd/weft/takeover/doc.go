// Package takeover removes the rules that kube-proxy left on a node: tables of mode nftables, and
// iptables chains of modes iptables (iptables-nft over netlink, legacy iptables with its programs)
// and ipvs.
//
// [Remove] cleans a network namespace, and [Find] only looks. The [Report] has removed rules, and
// tasks for the operator.
//
// As "kube-proxy --cleanup" does, the package removes kube-proxy's chains by their names, and jumps
// to them from base chains. It keeps the chains of other programs and of the kubelet
// (KUBE-FIREWALL, KUBE-KUBELET-CANARY, KUBE-IPTABLES-HINT, KUBE-MARK-DROP).
//
// New connections need rules, so Remove rejects a node without weft's rules.
//
// # Errors
//
// The report is valid even with an error: weft's rules are missing, or errors of package nft/kernel
// and of the programs of legacy iptables.
package takeover
