// Package takeover removes the rules that kube-proxy left on a node, after weft has replaced it: the
// tables of its nftables mode, the chains of its iptables mode (iptables-nft over netlink, legacy
// iptables with its programs), and the iptables chains of its ipvs mode.
//
// [Remove] cleans a network namespace. Its [Report] names the removed rules, and the rules that the
// operator has to remove; [Find] only looks. Read takeover.go first, then names.go for the names of
// kube-proxy's chains and legacy.go for legacy iptables.
//
// As "kube-proxy --cleanup" does, the package removes kube-proxy's chains by their names, and jumps to
// them from base chains. It keeps the chains of other programs and of the kubelet (KUBE-FIREWALL,
// KUBE-KUBELET-CANARY, KUBE-IPTABLES-HINT, KUBE-MARK-DROP). A kube-proxy that still runs would write
// its rules again.
//
// Established connections survive the removal, because they follow connection tracking. New ones need
// rules, so Remove rejects a node without weft's rules.
//
// # Errors
//
// Possible errors: weft's rules are missing, or errors of package nft/kernel and of the programs of
// legacy iptables. The report is valid even if there is an error.
package takeover
