package render

import (
	"fmt"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/frontends/policy/model"
)

// policyChain returns nil if the policy is left out or has no rules for the family.
func (t *table) policyChain(id model.PolicyID, l lookup) *object {
	key := policyLookup{id, l}
	if o := t.policyChains[key]; t.known(o) {
		return o
	}
	p := t.policies[id]
	if p == nil {
		return nil
	}
	b := t.policyRules(p, l)
	if b == nil || len(b.rules) == 0 {
		return nil
	}
	name := policyName(id)
	d := l.direction().String()
	o := b.chain("policy", name+"-"+d, name+" "+d)
	t.policyChains[key] = o
	return o
}

type policyLookup struct {
	id     model.PolicyID
	lookup lookup
}

var tierPrefixes = map[model.Tier]string{model.TierAdmin: "admin", model.TierBaseline: "baseline"}

// tierChain makes one chain, so that Pass can return. A policy that is left out drops, because its
// denied traffic is unknown.
func (t *table) tierChain(ids []model.PolicyID, l lookup) *object {
	b, d := &chainBuilder{table: t, lookup: l}, l.direction()
	for _, id := range ids {
		if p := t.policies[id]; p != nil {
			if of := t.policyRules(p, l); of != nil {
				b.append(of)
				continue
			}
		}
		name := policyName(id)
		about := name + " " + d.String() + " is left out"
		c := b.counter(DropCounter, name+"-"+d.String(), about, id)
		b.add(id, comment(about), match{text: fmt.Sprintf("counter name %q", c.name), need: c}, match{text: "drop"})
	}
	if len(b.rules) == 0 {
		return nil
	}
	return b.chain(tierPrefixes[ids[0].Tier], d.String(), policyNames(ids)+" "+d.String())
}

// classChain makes the chain that pods with these policies share. Every packet ends in the chain.
// With isolate, the chain accepts only packets of a pod to itself.
func (t *table) classChain(ids []model.PolicyID, l lookup, isolate bool) *object {
	if len(ids) == 0 {
		return nil
	}
	names, d := policyNames(ids), l.direction()
	memo := l.prefix() + " " + names
	if o := t.classes[memo]; o != nil && !isolate {
		return o
	}
	b := &chainBuilder{table: t, lookup: l}
	var none model.PolicyID
	if admin := model.OfTier(ids, model.TierAdmin); len(admin) > 0 && !isolate {
		b.jump(t.tierChain(admin, l))
	}
	b.add(none, "", match{text: t.source(l) + separator + t.destination(l) + " @" + setSelf}, match{text: b.accept()})
	if isolating := model.OfTier(ids, model.TierNetworkPolicy); len(isolating) > 0 || isolate {
		for _, id := range isolating {
			if !isolate {
				b.jump(t.policyChain(id, l))
			}
		}
		if len(isolating) == 0 {
			isolating = ids
		}
		about := policyNames(isolating) + " " + d.String()
		b.log(none, policyNames(isolating))
		c := b.counter(DropCounter, d.String(), about, isolating[0])
		b.add(none, comment(about), match{text: fmt.Sprintf("counter name %q", c.name), need: c}, match{text: "drop"})
	} else {
		if baseline := model.OfTier(ids, model.TierBaseline); len(baseline) > 0 {
			b.jump(t.tierChain(baseline, l))
		}
		b.add(none, "", match{text: b.accept()})
	}
	o := b.chain(l.prefix(), "", names)
	if !isolate {
		t.classes[memo] = o
	}
	return o
}

func (b *chainBuilder) jump(to *object) {
	if to != nil {
		b.add(to.owners[0], "", match{text: "jump " + to.name, need: to})
	}
}

// Chains of policies have a hash in their names, so these names are free.
const (
	setSelf     = "self"
	setLinks    = "links"
	setSelected = "selected"
	setRecheck  = "recheck"
	setPodCIDRs = "pod-cidrs"
	setKnown    = "known-pods"

	chainEgressAllowed = "egress-allowed"
	chainForward       = "forward"
	chainPrerouting    = "prerouting"
	chainMiddle        = "middle"
	chainInput         = "input"
)

func (f *family) declarations(start Start) (sets, verdicts []*weftv1.Set) {
	address := f.address
	sets = []*weftv1.Set{
		{Name: setSelf, Type: address + separator + address, Comment: "pods with policies, which may reach themselves through a Service"},
		{Name: setSelected, Type: address, Comment: "pods with policies"},
		{Name: setLinks, Type: "ifname", Comment: "interfaces of pods with policies"},
		{Name: setRecheck, Type: address, Comment: "addresses whose established connections are judged again"},
	}
	if start == StartDeny {
		sets = append(sets,
			&weftv1.Set{Name: setPodCIDRs, Type: address, Flags: []string{"interval"}, Comment: "addresses of the pods of this node"},
			&weftv1.Set{Name: setKnown, Type: address, Comment: "pods of this node whose policies are known"})
	}
	for _, name := range mapNames {
		verdicts = append(verdicts, &weftv1.Set{Name: name, Type: address + " : verdict", Comment: "pods of this node and the chains of their policies"})
	}
	for _, name := range mapNames[:untracked] {
		verdicts = append(verdicts, &weftv1.Set{Name: name + linkSuffix, Type: "ifname : verdict", Comment: "interfaces of pods of this node and the chains of their policies"})
	}
	return sets, verdicts
}

// Another pod of the node may be the destination of allowed packets.
func (f *family) egressAllowed() *weftv1.Chain {
	return chain(chainEgressAllowed, append(f.judged(ingress, false), "accept")...)
}

func chain(name string, rules ...string) *weftv1.Chain {
	c := &weftv1.Chain{Name: name}
	for _, r := range rules {
		c.Rules = append(c.Rules, &weftv1.Rule{Text: r})
	}
	return c
}
