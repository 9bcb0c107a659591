// Package takeover removes the rules that kube-proxy left on a node, when weft
// has taken its place: the tables of its nftables mode, the chains of its iptables
// mode (in iptables-nft over netlink, in legacy iptables by its programs), and
// of its ipvs mode those chains, with a word on the rest.
//
// What is removed is what kube-proxy's own --cleanup removes: its chains by
// their names, and the jumps to them from base chains. Chains of
// the kubelet (KUBE-FIREWALL, KUBE-KUBELET-CANARY, KUBE-IPTABLES-HINT,
// KUBE-MARK-DROP) and everything of others stay. It does not stop kube-proxy, which
// would write its rules again.
//
// Removing the rules of a proxy stops no connection: established ones follow
// connection tracking. New ones need somebody's rules, so Remove refuses as long as
// weft's are not there.
//
// # Errors
//
// ErrNotLive says that weft's rules are missing; the rest are those of package
// nft/kernel and of the programs of legacy iptables. What was removed before an error is in the report.
package takeover
