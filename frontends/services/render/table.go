package render

import (
	"fmt"
	"net/netip"
	"strings"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// set is one of a table's sets and maps.
type set uint8

const (
	clusterIPs set = iota
	nodePortIPs
	hairpin
	services
	endpoints
	nodePorts
	nodePortEndpoints
	noEndpoints
	noEndpointNodePorts
	numSets
)

// declarations are the sets and maps; "ip" stands for the family's word.
var declarations = [numSets]struct {
	name   string
	typeof string
	flags  []string
	// isMap and conntrack say which list of weftv1.Table it is in.
	isMap     bool
	conntrack bool
}{
	// Addresses of Services: what reaches one but no port of it is rejected.
	clusterIPs: {name: "cluster-ips", typeof: "ip daddr"},
	// Addresses and prefixes of this node that answer on NodePorts.
	nodePortIPs: {name: "nodeport-ips", typeof: "ip daddr", flags: []string{"interval"}},
	// Endpoints on this node, as source and destination of a flow to themselves.
	hairpin: {name: "hairpin", typeof: "ip saddr . ip daddr . meta l4proto . th dport"},
	// Front to pick-N.
	services: {name: "services", typeof: "ip daddr . meta l4proto . th dport : verdict", isMap: true},
	// Front and slot to endpoint.
	endpoints: {name: "endpoints", isMap: true, conntrack: true,
		typeof: "ip daddr . meta l4proto . th dport . numgen random mod 65536 : ip daddr . th dport"},
	nodePorts: {name: "nodeports", typeof: "meta l4proto . th dport : verdict", isMap: true},
	nodePortEndpoints: {name: "nodeport-endpoints", isMap: true, conntrack: true,
		typeof: "meta l4proto . th dport . numgen random mod 65536 : ip daddr . th dport"},
	// Fronts without an endpoint to reject-chain or drop.
	noEndpoints:         {name: "no-endpoint-services", typeof: "ip daddr . meta l4proto . th dport : verdict", isMap: true},
	noEndpointNodePorts: {name: "no-endpoint-nodeports", typeof: "meta l4proto . th dport : verdict", isMap: true},
}

// spell replaces the words "ip saddr" and "ip daddr", and the family in dnat.
func (w family) spell(text string) string {
	if w.table == "ip" {
		return text
	}
	return strings.NewReplacer("ip saddr", w.table+" saddr", "ip daddr", w.table+" daddr", "dnat ip ", "dnat "+w.table+" ").Replace(text)
}

// Names of chains that are built at more than one place.
const (
	chainServices      = "services"
	chainInputCheck    = "unserved-input"
	chainServiceCheck  = "unserved"
	chainMark          = "mark-for-masquerade"
	chainReject        = "reject-chain"
	pickPrefix         = "pick-"
	nodePortPickPrefix = "nodeport-pick-"
)

// base are the chains on hooks. Established packets pass one rule on each
// filter hook and none in the nat chains, which the kernel runs for the first
// packet of a flow only. The output hook has no name for the priority of
// destination NAT.
var base = []struct {
	name, kind, hook, priority string
	rules                      []string
}{
	{"nat-prerouting", "nat", "prerouting", "dstnat", []string{"jump " + chainServices}},
	{"nat-output", "nat", "output", "-100", []string{"jump " + chainServices}},
	{"filter-input", "filter", "input", "filter", []string{"ct state new jump " + chainInputCheck}},
	{"filter-forward", "filter", "forward", "filter", []string{"ct state new jump " + chainServiceCheck}},
	{"filter-output", "filter", "output", "filter", []string{"ct state new jump " + chainServiceCheck}},
}

// chain returns a chain's message; Rules are as given.
func chain(name string, rules ...string) *weftv1.Chain {
	c := &weftv1.Chain{Name: name}
	for _, r := range rules {
		c.Rules = append(c.Rules, &weftv1.Rule{Text: r})
	}
	return c
}

// chains returns all chains but pick-N: those that nothing but the
// configuration and the node decide.
func (t *table) chains(cfg *Config) []*weftv1.Chain {
	out := []*weftv1.Chain{
		chain(chainMark, t.mark(cfg)),
		chain(chainReject, "reject"),
		chain(chainServiceCheck,
			t.words.spell("ip daddr . meta l4proto . th dport vmap @no-endpoint-services"),
			t.words.spell("ip daddr @cluster-ips reject")),
	}
	out = append(out, t.nodePortChains(cfg)...)
	for _, b := range base {
		c := chain(b.name, b.rules...)
		c.Type, c.Hook, c.Priority, c.Policy = b.kind, b.hook, b.priority, "accept"
		out = append(out, c)
	}
	bit := uint32(1) << cfg.MasqueradeBit
	post := chain("nat-postrouting",
		fmt.Sprintf("meta mark & 0x%08x == 0x%08x meta mark set meta mark xor 0x%08x masquerade fully-random", bit, bit, bit),
		t.words.spell("ct status dnat ip saddr . ip daddr . meta l4proto . th dport @hairpin masquerade fully-random"))
	post.Type, post.Hook, post.Priority, post.Policy = "nat", "postrouting", "srcnat", "accept"
	return append(out, post)
}

// mark is the rule that asks for masquerading in nat-postrouting.
func (t *table) mark(cfg *Config) string {
	return fmt.Sprintf("meta mark set meta mark or 0x%08x", uint32(1)<<cfg.MasqueradeBit)
}

// nodePortChains returns the chains that depend on which addresses answer on
// NodePorts.
func (t *table) nodePortChains(cfg *Config) []*weftv1.Chain {
	var rules []string
	if m := t.masquerade(cfg); m != "" {
		rules = append(rules, m)
	}
	rules = append(rules,
		t.words.spell("ip daddr . meta l4proto . th dport vmap @services"),
		t.nodePortMatch()+" meta l4proto . th dport vmap @nodeports")
	return []*weftv1.Chain{
		chain(chainServices, rules...),
		chain(chainInputCheck,
			t.words.spell("ip daddr . meta l4proto . th dport vmap @no-endpoint-services"),
			t.nodePortMatch()+" meta l4proto . th dport vmap @no-endpoint-nodeports"),
	}
}

// masquerade is the rule that marks flows to ClusterIPs, empty for none. The
// source comes first: it spares pods the set lookup.
func (t *table) masquerade(cfg *Config) string {
	rest := t.words.spell("ip daddr @cluster-ips jump " + chainMark)
	cidrs := prefixes(cfg.Detect.CIDRs, t.family)
	switch {
	case cfg.MasqueradeAll:
		return rest
	case len(cidrs) == 0:
		return ""
	case len(cidrs) == 1:
		return t.words.spell("ip saddr != ") + prefixText(cidrs[0]) + " " + rest
	}
	texts := make([]string, len(cidrs))
	for i, c := range cidrs {
		texts[i] = prefixText(c)
	}
	return t.words.spell("ip saddr != { ") + strings.Join(texts, ", ") + " } " + rest
}

// nodePortMatch matches packets to an address that answers on NodePorts.
func (t *table) nodePortMatch() string {
	switch t.nodePort {
	case nodePortAll:
		return t.words.spell("ip daddr != ") + t.words.loopback + " fib daddr type local"
	case nodePortPrefixes:
		return t.words.spell("ip daddr @nodeport-ips fib daddr type local")
	default:
		return t.words.spell("ip daddr @nodeport-ips")
	}
}

// pick returns the chain that sends a flow to one of n endpoints.
func (t *table) pick(n int) *weftv1.Chain {
	// nft wants to know that there are ports before it maps to one.
	return chain(pickName(n), t.words.spell(fmt.Sprintf(
		"meta l4proto { tcp, udp, sctp } dnat ip to ip daddr . meta l4proto . th dport . numgen random mod %d map @endpoints", n)))
}

// nodePortPick is pick for NodePorts, whose flows are always masqueraded.
func (t *table) nodePortPick(cfg *Config, n int) *weftv1.Chain {
	return chain(nodePortPickName(n), t.mark(cfg), t.words.spell(fmt.Sprintf(
		"meta l4proto { tcp, udp, sctp } dnat ip to meta l4proto . th dport . numgen random mod %d map @nodeport-endpoints", n)))
}

func pickName(n int) string         { return fmt.Sprintf("%s%d", pickPrefix, n) }
func nodePortPickName(n int) string { return fmt.Sprintf("%s%d", nodePortPickPrefix, n) }

// prefixText is a prefix in nft's words: a single address has no length.
func prefixText(p netip.Prefix) string {
	if p.IsSingleIP() {
		return p.Addr().String()
	}
	return p.String()
}

// declare returns an empty set or map.
func (t *table) declare(s set) *weftv1.Set {
	d := &declarations[s]
	return &weftv1.Set{Name: d.name, Typeof: t.words.spell(d.typeof), Flags: d.flags}
}
