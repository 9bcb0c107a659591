package render

import (
	"fmt"
	"net/netip"
	"strings"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/frontends/services/model"
)

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
	loopbackNodePorts
	numSets
)

// "ip" stands for the family's keyword.
var declarations = [numSets]struct {
	name   string
	typeof string
	flags  []string
	// isMap selects the list in weftv1.Table; conntrack sets the role.
	isMap     bool
	conntrack bool
	// nodePort: keys have no address. slot: keys end in a slot.
	nodePort    bool
	slot        bool
	connections bool
}{
	// Addresses of Services. Packets to unknown ports are rejected.
	clusterIPs: {name: "cluster-ips", typeof: "ip daddr"},
	// Ranges of ClusterIPs. Packets to unused addresses are dropped.
	serviceCIDRs: {name: "service-cidrs", typeof: "ip daddr", flags: []string{"interval"}},
	// Addresses and prefixes that accept NodePorts.
	nodePortIPs: {name: "nodeport-ips", typeof: "ip daddr", flags: []string{"interval"}},
	// Endpoints on this node, as source and destination of a flow to themselves.
	hairpin: {name: "hairpin", typeof: "ip saddr . ip daddr . meta l4proto . th dport"},
	// Listener to the chain that drops sources outside the ranges.
	sourceRanges: {name: "source-ranges", typeof: "ip daddr . meta l4proto . th dport : verdict", isMap: true},
	// Listener to the chain that picks an endpoint.
	services: {name: "services", typeof: "ip daddr . meta l4proto . th dport : verdict", isMap: true},
	// Services, for traffic exempt from the policy Local.
	shortcuts: {name: "shortcuts", typeof: "ip daddr . meta l4proto . th dport : verdict", isMap: true},
	// Listener and slot to endpoint.
	endpoints: {name: "endpoints", isMap: true, conntrack: true, slot: true,
		typeof: "ip daddr . meta l4proto . th dport . numgen random mod 65536 : ip daddr . th dport"},
	// Listeners without endpoints to reject-chain or drop-chain.
	noEndpoints:       {name: "no-endpoint-services", typeof: "ip daddr . meta l4proto . th dport : verdict", isMap: true},
	nodePorts:         {name: "nodeports", typeof: "meta l4proto . th dport : verdict", isMap: true, nodePort: true},
	nodePortShortcuts: {name: "nodeport-shortcuts", typeof: "meta l4proto . th dport : verdict", isMap: true, nodePort: true},
	nodePortEndpoints: {name: "nodeport-endpoints", isMap: true, conntrack: true, nodePort: true, slot: true,
		typeof: "meta l4proto . th dport . numgen random mod 65536 : ip daddr . th dport"},
	noEndpointNodePorts: {name: "no-endpoint-nodeports", typeof: "meta l4proto . th dport : verdict", isMap: true, nodePort: true},
	stickyServices:      {name: "sticky-services", typeof: "ip daddr . meta l4proto . th dport : verdict", isMap: true},
	stickyNodePorts:     {name: "sticky-nodeports", typeof: "meta l4proto . th dport : verdict", isMap: true, nodePort: true},
	// Listeners, counting flows sent to endpoints.
	serviceConnections:  {name: "service-connections", typeof: "ip daddr . meta l4proto . th dport", connections: true},
	nodePortConnections: {name: "nodeport-connections", typeof: "meta l4proto . th dport", nodePort: true, connections: true},
	// NodePorts that are rejected on loopback addresses. Only while their family has any to reject.
	loopbackNodePorts: {name: "loopback-nodeports", typeof: "meta l4proto . th dport", nodePort: true},
}

func (w family) spell(text string) string {
	if w.table == "ip" {
		return text
	}
	return strings.NewReplacer("ip saddr", w.table+" saddr", "ip daddr", w.table+" daddr", "dnat ip ", "dnat "+w.table+" ").Replace(text)
}

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
	chainLoopback         = "reject-on-loopback"
)

// In the output hook nft has no name for the priority of destination NAT.
var base = []hook{
	{"nat-prerouting", "nat", "prerouting", "dstnat", []string{"jump " + chainServices}},
	{"nat-output", "nat", "output", "-100", []string{"jump " + chainServices}},
	{"filter-forward", "filter", "forward", "filter", []string{"ct state new jump " + chainServiceCheck}},
	{"filter-output", "filter", "output", "filter", []string{"ct state new jump " + chainServiceCheck}},
}

// served skips the lookups of unserved traffic for flows with an endpoint.
const served = "ct status dnat return"

func chain(name string, rules ...string) *weftv1.Chain {
	c := &weftv1.Chain{Name: name}
	for _, r := range rules {
		c.Rules = append(c.Rules, &weftv1.Rule{Text: r})
	}
	return c
}

// These chains depend only on the configuration and node.
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
		// nft 1.0.6 requires a protocol match, and lists only this form.
		chain(chainRemember,
			t.names.spell("meta l4proto { tcp, udp, sctp } ct original ip daddr . meta l4proto . ct original proto-dst vmap @sticky-services"),
			"meta l4proto { tcp, udp, sctp } meta l4proto . ct original proto-dst vmap @sticky-nodeports"),
	}
	out = append(out, t.nodeChains(cfg)...)
	if t.loopback != model.LoopbackIgnored {
		out = append(out, chain(chainLoopback, t.loopbackRejects()...))
	}
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

func (c *Config) bit() uint32 { return 1 << c.MasqueradeBit }

func (c *Config) mark() string { return fmt.Sprintf("meta mark set meta mark or 0x%08x", c.bit()) }

func (t *table) nodeChains(cfg *Config) []*weftv1.Chain {
	var rules []string
	switch clusterIPs := t.names.spell("ip daddr @cluster-ips jump " + chainMark); {
	case cfg.MasqueradeAll:
		rules = append(rules, clusterIPs)
	case t.pods.works():
		// Comparing the source first saves pods the set lookup.
		rules = append(rules, t.pods.notPod()+" "+clusterIPs)
	}
	rules = append(rules,
		t.names.spell("ip daddr . meta l4proto . th dport vmap @services"),
		t.nodePortMatch()+" meta l4proto . th dport vmap @nodeports")
	input := []string{served, t.names.spell("ip daddr . meta l4proto . th dport vmap @no-endpoint-services"),
		t.nodePortMatch() + " meta l4proto . th dport vmap @no-endpoint-nodeports"}
	if t.loopback != model.LoopbackIgnored {
		input = append(input, t.names.spell("ip daddr ")+t.names.loopback+" meta l4proto . th dport @loopback-nodeports goto "+chainLoopback)
	}
	return []*weftv1.Chain{
		chain(chainServices, rules...),
		chain(chainInputCheck, input...),
		chain(chainShortcut, t.shortcutRules(cfg, t.names.spell("ip daddr . meta l4proto . th dport vmap @shortcuts"))...),
		chain(chainNodePortShortcut, t.shortcutRules(cfg, "meta l4proto . th dport vmap @nodeport-shortcuts")...),
	}
}

// Processes of the node may have any node address and are masqueraded.
func (t *table) shortcutRules(cfg *Config, lookup string) (out []string) {
	if t.pods.works() {
		out = append(out, t.pods.pod()+" "+lookup)
	}
	return append(out, "fib saddr type local "+cfg.mark()+" "+lookup)
}

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

func prefixTexts(in []netip.Prefix, f model.Family) (out []string) {
	for _, p := range prefixes(in, f) {
		out = append(out, prefixText(p))
	}
	return out
}

func prefixText(p netip.Prefix) string {
	if p.IsSingleIP() {
		return p.Addr().String()
	}
	return p.String()
}

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
