// Package takeover removes the rules that kube-proxy left on a node after weft has replaced it: tables
// of mode nftables, and iptables chains of modes iptables (iptables-nft over netlink, legacy iptables
// with its programs) and ipvs.
//
// [Remove] cleans a network namespace, and [Find] only looks. The [Report] has removed rules, and
// tasks for the operator. Read takeover.go first, then names.go for kube-proxy's chains and legacy.go
// for legacy iptables.
//
// As "kube-proxy --cleanup" does, the package removes kube-proxy's chains by their names, and jumps to
// them from base chains. It keeps the chains of other programs and of the kubelet (KUBE-FIREWALL,
// KUBE-KUBELET-CANARY, KUBE-IPTABLES-HINT, KUBE-MARK-DROP). A running kube-proxy would write its rules
// again.
//
// Established connections survive, because they follow connection tracking. New ones need rules, so
// Remove rejects a node without weft's rules.
//
// # Errors
//
// Possible errors: weft's rules are missing, or errors of package nft/kernel and of the programs of
// legacy iptables. The report is valid even with an error.
package takeover
