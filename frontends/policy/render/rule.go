package render

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/frontends/policy/model"
)

type chainBuilder struct {
	*table
	lookup lookup
	rules  []*weftv1.Rule
	needs  []*object
	owners []model.PolicyID // of each rule
	absent int              // left out because a set has had no members
}

type match struct {
	text   string
	need   *object
	absent bool
}

var everything = []match{{}}

func (b *chainBuilder) add(of model.PolicyID, about string, parts ...match) {
	var text []string
	for _, p := range parts {
		if p.text != "" {
			text = append(text, p.text)
		}
		if p.need != nil && !slices.Contains(b.needs, p.need) {
			b.needs = append(b.needs, p.need)
		}
	}
	b.rules = append(b.rules, &weftv1.Rule{Text: strings.Join(text, " "), Comment: about})
	b.owners = append(b.owners, of)
	b.work++
}

func (b *chainBuilder) append(of *chainBuilder) {
	b.rules, b.owners, b.absent = append(b.rules, of.rules...), append(b.owners, of.owners...), b.absent+of.absent
	for _, n := range of.needs {
		if !slices.Contains(b.needs, n) {
			b.needs = append(b.needs, n)
		}
	}
}

func (b *chainBuilder) chain(prefix, readable, about string) *object {
	texts := make([]string, 0, 2*len(b.rules)+3)
	texts = append(texts, prefix, readable, about)
	for _, r := range b.rules {
		texts = append(texts, r.GetText(), r.GetComment())
	}
	return b.intern(identify(texts...), prefix, readable, func(name string) *object {
		return &object{
			content: &weftv1.Chain{Name: name, Comment: comment(about), Rules: b.rules},
			needs:   b.needs, owners: b.owners,
		}
	})
}

// A packet that leaves a pod may enter another one.
func (b *chainBuilder) accept() string {
	if b.lookup == egress {
		return "goto " + chainEgressAllowed
	}
	return "accept"
}

func (b *chainBuilder) policy(p *model.Policy) {
	rules := p.Rules[b.lookup.direction()]
	if len(rules) > manyRules && p.ID.Tier == model.TierNetworkPolicy {
		b.large(p.ID, rules)
	} else {
		b.all(p.ID, rules)
	}
}

// rule adds one nft rule for each pair of a peer and a port. If fewer rules suffice, each peer has
// one rule that jumps to a chain of the ports.
func (b *chainBuilder) rule(of model.PolicyID, r *model.Rule) {
	peers, ports := b.peers(of, r), b.ports(of, r)
	if len(peers) == 0 || len(ports) == 0 {
		return
	}
	all := len(peers) * len(ports)
	together := all > len(peers)+len(ports)
	peers, ports = present(peers), present(ports)
	b.absent += all - len(peers)*len(ports)
	if len(peers) == 0 || len(ports) == 0 {
		return
	}
	about := comment(policyName(of) + " " + r.Name)
	end := b.verdict(of, r, about)
	// In the chain of ports, a return would come back to the next rule.
	if together && r.Action != model.Pass {
		sub := &chainBuilder{table: b.table, lookup: b.lookup}
		for _, p := range ports {
			sub.add(of, about, append([]match{p}, end...)...)
		}
		chain := sub.chain("ports", "", policyName(of)+" "+r.Name)
		end, ports = []match{{text: "jump " + chain.name, need: chain}}, everything
	}
	for _, peer := range peers {
		for _, port := range ports {
			b.add(of, about, append([]match{peer, port}, end...)...)
		}
	}
}

func (b *chainBuilder) verdict(of model.PolicyID, r *model.Rule, about string) []match {
	kind := "rule"
	if r.Action == model.Deny {
		kind = DropCounter
	}
	c := b.counter(kind, policyName(of)+"-"+shortRule(r.Name), about, of)
	count := match{text: fmt.Sprintf("counter name %q", c.name), need: c}
	switch r.Action {
	case model.Accept:
		return []match{count, {text: b.accept()}}
	case model.Pass:
		return []match{count, {text: "return"}}
	case model.Deny:
		if b.cfg.DropLog == 0 {
			return []match{count, {text: "drop"}}
		}
		sub := &chainBuilder{table: b.table, lookup: b.lookup}
		sub.log(of, policyName(of))
		sub.add(of, about, count, match{text: "drop"})
		chain := sub.chain("deny", "", about)
		return []match{{text: "goto " + chain.name, need: chain}}
	default:
		panic(fmt.Sprintf("render: action %d", r.Action))
	}
}

// shortRule returns "ingress-0" for `ingress[0] "name"`.
func shortRule(name string) string {
	name, _, _ = strings.Cut(name, " ")
	return strings.TrimSuffix(strings.ReplaceAll(name, "[", "-"), "]")
}

func (b *chainBuilder) log(of model.PolicyID, policies string) {
	if b.cfg.DropLog > 0 {
		before, after := "weft drop ", " "+b.lookup.direction().String()+" "
		prefix := before + shorten(printable(policies), maxPrefix-len(before)-len(after)) + after
		b.add(of, "", match{text: fmt.Sprintf("limit rate %d/second log prefix %q", b.cfg.DropLog, prefix)})
	}
}

// DropCounter begins the names of counters of drops; comments name the policies and the direction.
const DropCounter = "drop"

func (b *chainBuilder) counter(prefix, readable, about string, of model.PolicyID) *object {
	id := identify(prefix, readable, about, b.lookup.direction().String())
	return b.intern(id, prefix, readable, func(name string) *object {
		return &object{content: &weftv1.Object{Kind: "counter", Name: name, Comment: comment(about)}, owners: []model.PolicyID{of}}
	})
}

// peers returns matches of which one must match.
func (b *chainBuilder) peers(of model.PolicyID, r *model.Rule) []match {
	if r.Any {
		return everything
	}
	field := b.peer(b.lookup)
	var out []match
	for _, id := range r.Pods {
		switch set := b.sets[id]; {
		case b.lookup == untracked:
		case set != nil:
			out = append(out, set.named(field+" @"+set.name, r.Action, of))
		case r.Action == model.Deny:
			// Indistinguishable packets are denied.
			return everything
		}
	}
	switch blocks := b.ofFamily(r.Blocks); {
	case len(blocks) == 0:
	case len(blocks) == 1 && blocks[0].First.IsUnspecified() && !blocks[0].Last.Next().IsValid():
		return everything
	case len(blocks) == 1:
		out = append(out, match{text: field + " " + rangeText(blocks[0])})
	default:
		set := b.blocks(blocks)
		out = append(out, match{text: field + " @" + set.name, need: set})
	}
	return out
}

// The rule is left out until the set has members, so that empty selectors cost the kernel little.
func (o *object) named(text string, a model.Action, of model.PolicyID) match {
	m := o.members
	m.denied = m.denied || a != model.Accept
	if !m.filled {
		m.waiting[of] = struct{}{}
	}
	return match{text: text, need: o, absent: !m.filled}
}

func present(all []match) []match {
	return slices.DeleteFunc(slices.Clone(all), func(m match) bool { return m.absent })
}

// The ranges of a family are adjacent.
func (f *family) ofFamily(all []model.Range) []model.Range {
	other := func(r model.Range) bool { return r.First.BitLen() != f.bits }
	from := slices.IndexFunc(all, func(r model.Range) bool { return !other(r) })
	if from < 0 {
		return nil
	}
	out := all[from:]
	if to := slices.IndexFunc(out, other); to >= 0 {
		out = out[:to]
	}
	return out
}

func (t *table) blocks(all []model.Range) *object {
	texts := make([]string, len(all)+1)
	texts[0] = "block"
	for i, r := range all {
		texts[i+1] = rangeText(r)
	}
	return t.intern(identify(texts...), "block", "", func(name string) *object {
		return &object{content: intervals(name, t.address, texts[1:])}
	})
}

func intervals(name, kind string, keys []string) *weftv1.Set {
	s := &weftv1.Set{Name: name, Type: kind, Flags: []string{"interval"}}
	for _, k := range keys {
		s.Elements = append(s.Elements, &weftv1.Element{Key: k})
	}
	return s
}

// rangeText returns an address, a prefix or two addresses in nft syntax.
func rangeText(r model.Range) string {
	if r.First == r.Last {
		return r.First.String()
	}
	first, last := r.First.AsSlice(), r.Last.AsSlice()
	bits := 0
	for bits < 8*len(first) && bit(first, bits) == bit(last, bits) {
		bits++
	}
	if p := netip.PrefixFrom(r.First, bits).Masked(); model.RangeOf(p) == r {
		return p.String()
	}
	return r.First.String() + "-" + r.Last.String()
}

func bit(b []byte, i int) byte { return b[i/8] >> (7 - i%8) & 1 }
