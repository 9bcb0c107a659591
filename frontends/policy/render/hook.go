package render

import (
	"google.golang.org/protobuf/proto"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/frontends/policy/model"
)

// hooks are the chains on hooks. They exist only while a packet may have to be dropped,
// because they cost every packet something.
type hooks struct {
	declared map[string]*weftv1.Chain
	// idle are those without a use, until Cleanup.
	idle map[string]struct{}
	// reason is what declared was made for.
	reason hookReason
}

// hookReason is all that the chains on hooks depend on.
type hookReason struct {
	ingress, egress, links, podCIDRs bool
	// recheck and everything are true if some or all connections are judged again.
	recheck, everything bool
}

func (t *table) hookReason() hookReason {
	return hookReason{
		ingress: len(t.entries[model.Ingress]) > 0, egress: len(t.entries[model.Egress]) > 0, links: len(t.linked) > 0, podCIDRs: len(t.podCIDRs) > 0,
		recheck: !t.recheck.empty(), everything: t.recheck.everything(),
	}
}

// hooked returns the chains on hooks that the table needs now.
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

// forward judges packets between a pod of this node and everything but the node.
func (t *table) forward() *weftv1.Chain {
	f := t.family
	rules := t.established(f.source, f.destination)
	rules = append(rules, t.untracked(true)...)
	if len(t.podCIDRs) > 0 {
		for _, end := range []string{f.source, f.destination} {
			rules = append(rules, end+" @"+setPodCIDRs+" "+end+" != @"+setKnown+" counter drop")
		}
	}
	rules = append(rules, t.judged(model.Egress)...)
	return baseChain(chainForward, append(rules, t.judged(model.Ingress)...))
}

// judged leads to the chains of a direction: by the interface where that is known, whatever the
// address, and by the address where not, and for packets of the other end.
func (t *table) judged(d model.Direction) (rules []string) {
	side, address := "oifname", t.family.destination
	if d == model.Egress {
		side, address = "iifname", t.family.source
	}
	if len(t.linked) > 0 || d == model.Ingress {
		rules = append(rules, "ct direction original "+side+" vmap @"+mapNames[d]+linkSuffix)
	}
	return append(rules, address+" vmap @"+mapNames[d])
}

// prerouting drops what a pod with policies sends from an address that this node does not
// reach through the pod's interface, and its router advertisements.
func (t *table) prerouting() *weftv1.Chain {
	from := "iifname @" + setLinks
	rules := []string{from + " fib saddr . iif oif missing counter drop"}
	if t.family.table == "ip6" {
		rules = append(rules, from+" icmpv6 type nd-router-advert counter drop")
	}
	c := baseChain(chainPrerouting, rules)
	c.Priority = "raw"
	return c
}

// input judges packets from a pod of this node to the node.
func (t *table) input() *weftv1.Chain {
	var rules []string
	if len(t.linked) > 0 && t.family.table == "ip6" {
		// No set of rechecked addresses has them, so each packet is judged.
		for _, which := range []string{"ct direction original", "ct state invalid,untracked icmpv6 type != { " + discovery + " }"} {
			rules = append(rules, "ip6 saddr fe80::/10 "+which+" iifname vmap @"+mapEgress+linkSuffix)
		}
	}
	rules = append(rules, t.established(t.family.source)...)
	rules = append(rules, "iif lo accept")
	rules = append(rules, t.untracked(false)...)
	return baseChain(chainInput, append(rules, t.judged(model.Egress)...))
}

// established accepts the packets of connections that need not be judged again, given
// their ends that may be rechecked. Most packets see this rule only.
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

// untracked drops packets of pods with policies that belong to no connection: no policy
// can judge them. Neighbour discovery is never tracked.
func (t *table) untracked(forward bool) (rules []string) {
	address := t.family.table
	if address == "ip6" {
		// A packet of them that was forwarded, and not by a bridge, has another hop limit.
		rules = append(rules, "ip6 hoplimit 255 icmpv6 type { "+discovery+" } accept")
	}
	rules = append(rules, "ct state invalid,untracked "+address+" saddr @"+setSelected+" counter drop")
	if forward {
		rules = append(rules, "ct state invalid,untracked "+address+" daddr @"+setSelected+" counter drop")
	}
	return rules
}

// discovery are the messages of neighbour discovery (RFC 4861).
const discovery = "nd-router-solicit, nd-router-advert, nd-neighbor-solicit, nd-neighbor-advert"

// relatedOnly is the first rule of the chains on hooks if all connections are judged again.
const relatedOnly = "ct state related accept"

func baseChain(name string, rules []string) *weftv1.Chain {
	c := chain(name, rules...)
	c.Type, c.Hook, c.Priority, c.Policy = "filter", name, "filter + 5", "accept"
	return c
}

// flushHooks declares the chains on hooks that are needed and differ.
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
