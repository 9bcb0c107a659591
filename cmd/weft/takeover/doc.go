// Package takeover removes the rules that kube-proxy left on a node, after weft has
// replaced it: the tables of its nftables mode, the chains of its iptables mode
// (iptables-nft over netlink, legacy iptables with its programs), and the iptables
// chains of its ipvs mode.
//
// [Remove] cleans a network namespace. Its [Report] names what was removed, and what the
// operator has to remove; [Find] looks for the same and removes nothing. Read takeover.go first, then names.go for the names of
// kube-proxy's chains and legacy.go for legacy iptables.
//
// The package removes what "kube-proxy --cleanup" removes: kube-proxy's chains, by
// their names, and the jumps to them from base chains. It keeps the chains of the
// kubelet (KUBE-FIREWALL, KUBE-KUBELET-CANARY, KUBE-IPTABLES-HINT, KUBE-MARK-DROP) and of
// all other programs. It does not stop kube-proxy, which would write its rules again.
//
// Established connections survive the removal, because they follow connection tracking.
// New ones need rules, so Remove refuses to run while weft's rules are missing.
//
// # Errors
//
// If weft's rules are missing, the error says so. Other errors come from package nft/kernel
// and from the programs of legacy iptables. The report is valid even if there is an error.
package takeover
