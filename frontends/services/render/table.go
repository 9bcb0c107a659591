package render

import (
	"fmt"
	"net/netip"
	"strings"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/frontends/services/model"
)

// set is one of a table's sets and maps.
type set uint8

const (
	clusterIPs set = iota
	serviceCIDRs
	nodePortIPs
	hairpin
	sourceRanges
	services
	shortcuts
	endpoints
	noEndpoints
	nodePorts
	nodePortShortcuts
	nodePortEndpoints
	noEndpointNodePorts
	stickyServices
	stickyNodePorts
	serviceConnections
	nodePortConnections
	numSets
)

// declarations are the sets and maps that exist always, or if their connections are
// counted; "ip" stands for the keyword of the family.
var declarations = [numSets]struct {
	name   string
	typeof string
	flags  []string
	// isMap and conntrack decide which list of weftv1.Table it is in.
	isMap     bool
	conntrack bool
	// nodePort is true if keys have no address, and slot if they end in the slot of an
	// endpoint.
	nodePort bool
	slot     bool
	// connections is true for the sets that count connections.
	connections bool
}{
	// Addresses of Services. Packets to one of them but not to a port of a Service are
	// rejected.
	clusterIPs: {name: "cluster-ips", typeof: "ip daddr"},
	// The ranges of all ClusterIPs. Packets to an address that is not in use are dropped.
	serviceCIDRs: {name: "service-cidrs", typeof: "ip daddr", flags: []string{"interval"}},
	// Addresses and prefixes of this node that accept NodePorts.
	nodePortIPs: {name: "nodeport-ips", typeof: "ip daddr", flags: []string{"interval"}},
	// Endpoints on this node, as source and destination of a flow to themselves.
	hairpin: {name: "hairpin", typeof: "ip saddr . ip daddr . meta l4proto . th dport"},
	// Listeners with source ranges to the chain that drops other sources.
	sourceRanges: {name: "source-ranges", typeof: "ip daddr . meta l4proto . th dport : verdict", isMap: true},
	// Listener to the chain that picks an endpoint.
	services: {name: "services", typeof: "ip daddr . meta l4proto . th dport : verdict", isMap: true},
	// The same for traffic that need not keep to the traffic policy Local.
	shortcuts: {name: "shortcuts", typeof: "ip daddr . meta l4proto . th dport : verdict", isMap: true},
	// Listener and slot to endpoint.
	endpoints: {name: "endpoints", isMap: true, conntrack: true, slot: true,
		typeof: "ip daddr . meta l4proto . th dport . numgen random mod 65536 : ip daddr . th dport"},
	// Listeners without an endpoint to reject-chain or drop.
	noEndpoints: {name: "no-endpoint-services", typeof: "ip daddr . meta l4proto . th dport : verdict", isMap: true},
	// The same for NodePorts.
	nodePorts:         {name: "nodeports", typeof: "meta l4proto . th dport : verdict", isMap: true, nodePort: true},
	nodePortShortcuts: {name: "nodeport-shortcuts", typeof: "meta l4proto . th dport : verdict", isMap: true, nodePort: true},
	nodePortEndpoints: {name: "nodeport-endpoints", isMap: true, conntrack: true, nodePort: true, slot: true,
		typeof: "meta l4proto . th dport . numgen random mod 65536 : ip daddr . th dport"},
	noEndpointNodePorts: {name: "no-endpoint-nodeports", typeof: "meta l4proto . th dport : verdict", isMap: true, nodePort: true},
	// Listeners with session affinity to the chain that remembers where a flow went.
	stickyServices: {name: "sticky-services", typeof: "ip daddr . meta l4proto . th dport : verdict", isMap: true},
	// The same for NodePorts.
	stickyNodePorts: {name: "sticky-nodeports", typeof: "meta l4proto . th dport : verdict", isMap: true, nodePort: true},
	// Listeners, with the number of flows that were sent to their endpoints.
	serviceConnections: {name: "service-connections", typeof: "ip daddr . meta l4proto . th dport", connections: true},
	// The same for NodePorts.
	nodePortConnections: {name: "nodeport-connections", typeof: "meta l4proto . th dport", nodePort: true, connections: true},
}

// spell replaces the keywords "ip saddr" and "ip daddr", and the family in dnat.
func (w family) spell(text string) string {
	if w.table == "ip" {
		return text
	}
	return strings.NewReplacer("ip saddr", w.table+" saddr", "ip daddr", w.table+" daddr", "dnat ip ", "dnat "+w.table+" ").Replace(text)
}

// Names of chains that are used at more than one place.
const (
	chainServices         = "services"
	chainFirewall         = "firewall"
	chainInputCheck       = "unserved-input"
	chainServiceCheck     = "unserved"
	chainMark             = "mark-for-masquerade"
	chainReject           = "reject-chain"
	chainDrop             = "drop-chain"
	chainShortcut         = "shortcut"
	chainNodePortShortcut = "nodeport-shortcut"
	chainRemember         = "remember"
)

// base are the chains on hooks that always exist. Established packets pass one rule on
// each filter hook and none in the nat chains, which the kernel runs only for the first
// packet of a flow. In the output hook nft has no name for the priority of destination
// NAT.
var base = []hook{
	{"nat-prerouting", "nat", "prerouting", "dstnat", []string{"jump " + chainServices}},
	{"nat-output", "nat", "output", "-100", []string{"jump " + chainServices}},
	{"filter-forward", "filter", "forward", "filter", []string{"ct state new jump " + chainServiceCheck}},
	{"filter-output", "filter", "output", "filter", []string{"ct state new jump " + chainServiceCheck}},
}

// served skips the lookups for traffic without endpoints if a flow was sent to one.
const served = "ct status dnat return"

// chain returns the message of a chain.
func chain(name string, rules ...string) *weftv1.Chain {
	c := &weftv1.Chain{Name: name}
	for _, r := range rules {
		c.Rules = append(c.Rules, &weftv1.Rule{Text: r})
	}
	return c
}

// chains returns the chains that depend only on the configuration and the node: all
// except those that pick an endpoint, those of a port with session affinity, and those on
// demand.
func (t *table) chains(cfg *Config) []*weftv1.Chain {
	out := []*weftv1.Chain{
		chain(chainMark, cfg.mark()),
		chain(chainReject, cfg.drop(NoEndpoints, "reject")),
		chain(chainDrop, cfg.drop(NoLocalEndpoints, "drop")),
		chain(chainServiceCheck, served,
			t.names.spell("ip daddr . meta l4proto . th dport vmap @no-endpoint-services"),
			t.names.spell("ip daddr @cluster-ips "+cfg.drop(UnknownPort, "reject")),
			t.names.spell("ip daddr @service-cidrs "+cfg.drop(UnusedClusterIP, "drop"))),
		chain(chainFirewall, t.names.spell("ip daddr . meta l4proto . th dport vmap @source-ranges")),
		// nft 1.0.6 requires a match of the protocol, and lists no other form of this.
		chain(chainRemember,
			t.names.spell("meta l4proto { tcp, udp, sctp } ct original ip daddr . meta l4proto . ct original proto-dst vmap @sticky-services"),
			"meta l4proto { tcp, udp, sctp } meta l4proto . ct original proto-dst vmap @sticky-nodeports"),
	}
	out = append(out, t.nodeChains(cfg)...)
	for i := range base {
		out = append(out, base[i].chain())
	}
	bit := cfg.bit()
	post := chain("nat-postrouting",
		fmt.Sprintf("meta mark & 0x%08x == 0x%08x meta mark set meta mark xor 0x%08x masquerade fully-random", bit, bit, bit),
		t.names.spell("ct status dnat ip saddr . ip daddr . meta l4proto . th dport @hairpin masquerade fully-random"))
	post.Type, post.Hook, post.Priority, post.Policy = "nat", "postrouting", "srcnat", "accept"
	return append(out, post)
}

// bit is the bit of the mark that requests masquerading.
func (c *Config) bit() uint32 { return 1 << c.MasqueradeBit }

// mark is the statement that requests masquerading in nat-postrouting.
func (c *Config) mark() string { return fmt.Sprintf("meta mark set meta mark or 0x%08x", c.bit()) }

// nodeChains returns the chains that depend on the node: on the addresses that accept
// NodePorts, and on how its pods are recognized.
func (t *table) nodeChains(cfg *Config) []*weftv1.Chain {
	var rules []string
	switch clusterIPs := t.names.spell("ip daddr @cluster-ips jump " + chainMark); {
	case cfg.MasqueradeAll:
		rules = append(rules, clusterIPs)
	case t.pods.works():
		// The source comes first, which saves pods the set lookup.
		rules = append(rules, t.pods.notPod()+" "+clusterIPs)
	}
	rules = append(rules,
		t.names.spell("ip daddr . meta l4proto . th dport vmap @services"),
		t.nodePortMatch()+" meta l4proto . th dport vmap @nodeports")
	return []*weftv1.Chain{
		chain(chainServices, rules...),
		chain(chainInputCheck, served,
			t.names.spell("ip daddr . meta l4proto . th dport vmap @no-endpoint-services"),
			t.nodePortMatch()+" meta l4proto . th dport vmap @no-endpoint-nodeports"),
		chain(chainShortcut, t.shortcutRules(cfg, t.names.spell("ip daddr . meta l4proto . th dport vmap @shortcuts"))...),
		chain(chainNodePortShortcut, t.shortcutRules(cfg, "meta l4proto . th dport vmap @nodeport-shortcuts")...),
	}
}

// shortcutRules let pods keep their source on the way to all endpoints. Processes of the
// node, which may have any of its addresses, do not.
func (t *table) shortcutRules(cfg *Config, lookup string) (out []string) {
	if t.pods.works() {
		out = append(out, t.pods.pod()+" "+lookup)
	}
	return append(out, "fib saddr type local "+cfg.mark()+" "+lookup)
}

// nodePortMatch matches packets to an address that accepts NodePorts.
func (t *table) nodePortMatch() string {
	switch {
	case t.nodePort.All:
		return t.names.spell("ip daddr != ") + t.names.loopback + " fib daddr type local"
	case !t.nodePort.Primary:
		return t.names.spell("ip daddr @nodeport-ips fib daddr type local")
	default:
		return t.names.spell("ip daddr @nodeport-ips")
	}
}

// prefixTexts returns the prefixes of one family, as prefixes does, in nft syntax.
func prefixTexts(in []netip.Prefix, f model.Family) (out []string) {
	for _, p := range prefixes(in, f) {
		out = append(out, prefixText(p))
	}
	return out
}

// prefixText is a prefix in nft syntax: a single address has no length.
func prefixText(p netip.Prefix) string {
	if p.IsSingleIP() {
		return p.Addr().String()
	}
	return p.String()
}

// declare returns an empty set or map.
func (t *table) declare(cfg *Config, s set) *weftv1.Set {
	d := &declarations[s]
	out := &weftv1.Set{Name: d.name, Typeof: t.names.spell(d.typeof), Flags: d.flags}
	if d.conntrack {
		out.Role = weftv1.MapRole_MAP_ROLE_CONNTRACK
	}
	if cfg.counts(s) {
		out.Stateful = []string{"counter"}
	}
	return out
}
