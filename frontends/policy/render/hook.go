package render

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// hooks exist only while a packet may have to be dropped: they cost every packet.
type hooks struct {
	declared map[string]*weftv1.Chain
	idle     map[string]struct{} // unused, until Cleanup
	reason   hookReason
}

type hookReason struct {
	ingress, egress, links, podCIDRs bool
	recheck, everything              bool // some or all connections are judged again
}

func (t *table) hookReason() hookReason {
	return hookReason{
		ingress: len(t.entries[ingress]) > 0, egress: len(t.entries[egress]) > 0, links: len(t.linked) > 0, podCIDRs: len(t.podCIDRs) > 0,
		recheck: !t.recheck.empty(), everything: t.recheck.everything(),
	}
}

// hookRules makes the chains on hooks of a family.
type hookRules struct {
	*family
	hookReason
}

func (h hookRules) chains() []*weftv1.Chain {
	var out []*weftv1.Chain
	if h.ingress || h.egress || h.podCIDRs {
		out = append(out, h.forward())
	}
	if h.egress {
		out = append(out, h.input())
	}
	if h.links {
		out = append(out, h.prerouting())
	}
	return out
}

func (h hookRules) forward() *weftv1.Chain {
	rules := h.established(h.opener, h.responder)
	rules = append(rules, h.withoutConnection("invalid,untracked", "saddr", "daddr")...)
	if h.links {
		rules = append(rules, "ct state invalid,untracked iifname @"+setLinks+" counter drop")
	}
	rules = append(rules, "ct state new tcp flags & syn == 0 jump "+chainMiddle)
	if h.podCIDRs {
		for _, end := range []string{h.opener, h.responder} {
			rules = append(rules, end+" @"+setPodCIDRs+" "+end+" != @"+setKnown+" counter drop")
		}
	}
	return baseChain(chainForward, slices.Concat(rules, h.judged(egress, h.links), h.judged(ingress, h.links)))
}

// judged looks up the chains by interface, only in the original direction, or else by address.
func (f *family) judged(d lookup, links bool) (rules []string) {
	side, address := "oifname", f.responder
	if d == egress {
		side, address = "iifname", f.opener
	}
	if links || d == ingress {
		rules = append(rules, "ct direction original "+side+" vmap @"+mapNames[d]+linkSuffix)
	}
	return append(rules, address+" vmap @"+mapNames[d])
}

// prerouting drops packets from an address of a pod with policies on another interface.
func (f *family) prerouting() *weftv1.Chain {
	c := baseChain(chainPrerouting, []string{"iifname @" + setLinks + " goto " + chainFromPod, f.table + " saddr @" + setSelected + forged})
	c.Priority = "raw"
	return c
}

// fromPod drops packets with forged sources, router advertisements and redirects of pods with
// policies.
func (f *family) fromPod() *weftv1.Chain {
	var rules []string
	if f.table == "ip6" {
		rules = append(rules, "icmpv6 type { nd-router-advert, nd-redirect } counter drop", "ip6 hoplimit 255 icmpv6 type { "+discovery+" } accept")
	}
	return chain(chainFromPod, append(rules, strings.TrimSpace(forged))...)
}

// forged drops a packet if this node does not reach its source through its interface.
const forged = " fib saddr . iif oif missing counter drop"

func (h hookRules) input() *weftv1.Chain {
	// No chain sees packets sent by the node. If conntrack forgets a pod's connection, a packet of
	// the node may begin it again, with replies of the pod.
	rules := []string{"ct direction reply tcp sport >= " + firstClientPort + " tcp dport < " + firstClientPort + " " + h.source(untracked) + " vmap @" + mapNames[untracked]}
	if h.links && h.table == "ip6" {
		// Link-local addresses are never rechecked, so each packet is judged.
		rules = append(rules, "ip6 saddr fe80::/10 ct direction original iifname vmap @"+mapNames[egress]+linkSuffix)
	}
	rules = append(rules, h.established(h.opener)...)
	rules = append(rules, "iif lo accept")
	rules = append(rules, h.withoutConnection("invalid", "saddr")...)
	rules = append(rules, "ct state untracked "+h.source(untracked)+" vmap @"+mapNames[untracked])
	if h.links {
		rules = append(rules, "ct state untracked iifname vmap @"+mapNames[egress]+linkSuffix)
	}
	return baseChain(chainInput, append(rules, h.judged(egress, h.links)...))
}

// established accepts packets of known connections, unless one of ends is rechecked. Most packets
// see only this rule.
func (h hookRules) established(ends ...string) []string {
	switch {
	case h.everything:
		return []string{relatedOnly}
	case !h.recheck:
		return []string{"ct state established,related accept"}
	}
	match := "ct state established"
	for _, end := range ends {
		match += " " + end + " != @" + setRecheck
	}
	return []string{match + " accept", relatedOnly}
}

// No policy can judge packets without a connection. Neighbour discovery is never tracked.
func (f *family) withoutConnection(states string, sides ...string) (rules []string) {
	if f.table == "ip6" {
		// Routed, not bridged, discovery packets have another hop limit.
		rules = append(rules, "ip6 hoplimit 255 icmpv6 type { "+discovery+" } accept")
	}
	for _, side := range sides {
		rules = append(rules, "ct state "+states+" "+f.table+" "+side+" @"+setSelected+" counter drop")
	}
	return rules
}

// The least client port of most systems (ip_local_port_range).
const firstClientPort = "32768"

// middle judges TCP packets of connections unknown to conntrack, after `conntrack -F` or at the
// first start. A packet of the server would open them in the wrong direction, so only a client's
// ports go on.
func (f *family) middle() *weftv1.Chain {
	out := chain(chainMiddle, "tcp sport >= "+firstClientPort+" tcp dport < "+firstClientPort+" return")
	for _, side := range []string{"saddr", "daddr"} {
		out.Rules = append(out.Rules, &weftv1.Rule{Text: f.table + " " + side + " @" + setSelected + " counter drop"})
	}
	return out
}

// Neighbour discovery (RFC 4861).
const discovery = "nd-router-solicit, nd-router-advert, nd-neighbor-solicit, nd-neighbor-advert"

const relatedOnly = "ct state related accept"

func baseChain(name string, rules []string) *weftv1.Chain {
	c := chain(name, rules...)
	c.Type, c.Hook, c.Priority, c.Policy = "filter", name, "filter + 5", "accept"
	return c
}

// flush declares the chains for a new reason, and returns their number.
func (h *hooks) flush(p *patch, f *family, why hookReason) (work uint64) {
	if why == h.reason {
		return 0
	}
	h.reason = why
	for name := range h.declared {
		h.idle[name] = struct{}{}
	}
	for _, c := range (hookRules{f, why}).chains() {
		name := c.GetName()
		delete(h.idle, name)
		if !proto.Equal(h.declared[name], c) {
			h.declared[name] = c
			p.chains = append(p.chains, c)
			work++
		}
	}
	return work
}
