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

func (t *table) hooked(why hookReason) []*weftv1.Chain {
	var out []*weftv1.Chain
	if why.ingress || why.egress || why.podCIDRs {
		out = append(out, t.forward())
	}
	if why.egress {
		out = append(out, t.input())
	}
	if why.links {
		out = append(out, t.prerouting())
	}
	return out
}

func (t *table) forward() *weftv1.Chain {
	f := t.family
	rules := t.established(f.source, f.destination)
	rules = append(rules, t.withoutConnection("invalid,untracked", "saddr", "daddr")...)
	if len(t.linked) > 0 {
		rules = append(rules, "ct state invalid,untracked iifname @"+setLinks+" counter drop")
	}
	rules = append(rules, "ct state new tcp flags & syn == 0 jump "+chainMiddle)
	if len(t.podCIDRs) > 0 {
		for _, end := range []string{f.source, f.destination} {
			rules = append(rules, end+" @"+setPodCIDRs+" "+end+" != @"+setKnown+" counter drop")
		}
	}
	return baseChain(chainForward, slices.Concat(rules, t.judged(egress), t.judged(ingress)))
}

// judged leads to the chains by a known interface, or else, and for the other end, by the address.
func (t *table) judged(d lookup) (rules []string) {
	side, address := "oifname", t.family.destination
	if d == egress {
		side, address = "iifname", t.family.source
	}
	if len(t.linked) > 0 || d == ingress {
		rules = append(rules, "ct direction original "+side+" vmap @"+mapNames[d]+linkSuffix)
	}
	return append(rules, address+" vmap @"+mapNames[d])
}

// prerouting drops packets from an address of a pod with policies on another interface.
func (t *table) prerouting() *weftv1.Chain {
	c := baseChain(chainPrerouting, []string{"iifname @" + setLinks + " goto " + chainFromPod, t.family.table + " saddr @" + setSelected + forged})
	c.Priority = "raw"
	return c
}

// fromPod drops packets with forged sources, router advertisements and redirects of pods with
// policies.
func (t *table) fromPod() *weftv1.Chain {
	var rules []string
	if t.family.table == "ip6" {
		rules = append(rules, "icmpv6 type { nd-router-advert, nd-redirect } counter drop", "ip6 hoplimit 255 icmpv6 type { "+discovery+" } accept")
	}
	return chain(chainFromPod, append(rules, strings.TrimSpace(forged))...)
}

// forged drops a packet if this node does not reach its source through its interface.
const forged = " fib saddr . iif oif missing counter drop"

func (t *table) input() *weftv1.Chain {
	// No chain sees packets sent by the node. If conntrack forgets a pod's connection, a packet of
	// the node may begin it again, with replies of the pod.
	rules := []string{"ct direction reply tcp sport >= " + firstClientPort + " tcp dport < " + firstClientPort + " " + t.source(untracked) + " vmap @" + mapNames[untracked]}
	if len(t.linked) > 0 && t.family.table == "ip6" {
		// Link-local addresses are never rechecked, so each packet is judged.
		rules = append(rules, "ip6 saddr fe80::/10 ct direction original iifname vmap @"+mapNames[egress]+linkSuffix)
	}
	rules = append(rules, t.established(t.family.source)...)
	rules = append(rules, "iif lo accept")
	rules = append(rules, t.withoutConnection("invalid", "saddr")...)
	rules = append(rules, "ct state untracked "+t.source(untracked)+" vmap @"+mapNames[untracked])
	if len(t.linked) > 0 {
		rules = append(rules, "ct state untracked iifname vmap @"+mapNames[egress]+linkSuffix)
	}
	return baseChain(chainInput, append(rules, t.judged(egress)...))
}

// ends may be rechecked. Most packets see only this rule.
func (t *table) established(ends ...string) []string {
	switch {
	case t.recheck.everything():
		return []string{relatedOnly}
	case t.recheck.empty():
		return []string{"ct state established,related accept"}
	}
	match := "ct state established"
	for _, end := range ends {
		match += " " + end + " != @" + setRecheck
	}
	return []string{match + " accept", relatedOnly}
}

// No policy can judge packets without a connection. Neighbour discovery is never tracked.
func (t *table) withoutConnection(states string, sides ...string) (rules []string) {
	if t.family.table == "ip6" {
		// Routed, not bridged, discovery packets have another hop limit.
		rules = append(rules, "ip6 hoplimit 255 icmpv6 type { "+discovery+" } accept")
	}
	for _, side := range sides {
		rules = append(rules, "ct state "+states+" "+t.family.table+" "+side+" @"+setSelected+" counter drop")
	}
	return rules
}

// The least client port of most systems (ip_local_port_range).
const firstClientPort = "32768"

// middle judges TCP packets of connections unknown to conntrack, after `conntrack -F` or at the
// first start. A packet of the server would open them in the wrong direction, so only a client's
// ports go on.
func (t *table) middle() *weftv1.Chain {
	out := chain(chainMiddle, "tcp sport >= "+firstClientPort+" tcp dport < "+firstClientPort+" return")
	for _, side := range []string{"saddr", "daddr"} {
		out.Rules = append(out.Rules, &weftv1.Rule{Text: t.family.table + " " + side + " @" + setSelected + " counter drop"})
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

func (t *table) flushHooks(p *patch) {
	why := t.hookReason()
	if why == t.reason {
		return
	}
	t.reason = why
	needed := t.hooked(why)
	for name := range t.hooks.declared {
		t.hooks.idle[name] = struct{}{}
	}
	for _, c := range needed {
		name := c.GetName()
		delete(t.hooks.idle, name)
		if !proto.Equal(t.hooks.declared[name], c) {
			t.hooks.declared[name] = c
			p.chains = append(p.chains, c)
			t.work++
		}
	}
}
