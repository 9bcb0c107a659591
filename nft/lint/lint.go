package lint

import (
	"cmp"
	"slices"
	"strings"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/eval"
)

const (
	// packets tried for a base chain and a kind of finding
	maxTrials = 256
	// rules visited from a base chain, and reported places remembered
	maxWalk = 20_000
	// elements read from a set
	maxElements = 256
	maxFindings = 256
	// rules run in all evaluations
	maxRules = 1 << 20
)

// Options describe the node.
type Options struct {
	Needs []Need
	// Part means that rules outside of the ruleset may read its sets.
	Part bool
}

// Run returns the findings, ordered by kind and place.
func Run(rules *eval.Ruleset, o Options) []Finding {
	l := &linter{
		rules: rules, budget: maxRules, seen: make(map[group]int), places: make(map[groupPlace]bool),
		parties: make(map[*eval.Chain]Party), chains: make(map[*eval.Table]map[string]*eval.Chain),
	}
	l.tables(o.Part)
	for _, family := range []nft.Family{nft.FamilyIP, nft.FamilyIP6} {
		for hook := range hookNames {
			chains := rules.BaseChains(family, uint32(hook)) //nolint:gosec // a small number
			l.overridden(family, chains)
			l.equalPriorities(family, chains)
		}
	}
	l.marks()
	l.cutOff(o.Needs)
	slices.SortStableFunc(l.found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(slices.Index(IDs, a.ID), slices.Index(IDs, b.ID)), cmp.Compare(a.Subject.Party.Fragment, b.Subject.Party.Fragment),
			cmp.Compare(a.Subject.Table.String(), b.Subject.Table.String()), cmp.Compare(a.Subject.Chain, b.Subject.Chain))
	})
	return l.found
}

// by enum nf_inet_hooks
var hookNames = [...]string{"prerouting", "input", "forward", "output", "postrouting"}

type linter struct {
	rules   *eval.Ruleset
	budget  int
	found   []Finding
	seen    map[group]int
	places  map[groupPlace]bool
	parties map[*eval.Chain]Party
	chains  map[*eval.Table]map[string]*eval.Chain
}

type group struct {
	id                  ID
	subject, other      string
	chain, otherChain   string
	subjectSet, further string
}

type groupPlace struct {
	group
	place Place
}

func (l *linter) report(f Finding, rules ...*eval.Rule) {
	for _, r := range rules {
		if r != nil && ignores(r.Comment, f.ID) {
			return
		}
	}
	g := group{f.ID, f.Subject.Party.key(), f.Other.Party.key(), f.Subject.Table.Name + " " + f.Subject.Chain, f.Other.Table.Name + " " + f.Other.Chain, f.Subject.Set, ""}
	if f.ID == NeverMatches {
		g.further = f.Subject.Rule
	}
	// found again in the other family
	if l.places[groupPlace{g, f.Subject}] {
		return
	}
	if len(l.places) < maxWalk {
		l.places[groupPlace{g, f.Subject}] = true
	}
	if i, ok := l.seen[g]; ok {
		l.found[i].More++
		return
	}
	if len(l.found) == maxFindings {
		return
	}
	l.seen[g] = len(l.found)
	l.found = append(l.found, f)
}

func ignores(comment string, id ID) bool {
	for _, word := range strings.Fields(comment) {
		if word == "weft:ignore" || word == "weft:ignore="+string(id) {
			return true
		}
	}
	return false
}

// rulesOf returns nil for an unreadable chain.
func rulesOf(c *eval.Chain) []eval.Rule {
	if c.Load == nil {
		return c.Rules
	}
	rules, err := c.Load()
	if err != nil {
		return nil
	}
	return rules
}

func (l *linter) party(t *eval.Table, c *eval.Chain, r *eval.Rule) Party {
	if r != nil && r.Owner != "" {
		return Party{Fragment: r.Owner}
	}
	if c.Owner != "" {
		return Party{Fragment: c.Owner}
	}
	p, ok := l.parties[c]
	if !ok {
		p = programOf(t, c)
		for i := range rulesOf(c) {
			if owner := rulesOf(c)[i].Owner; owner != "" {
				p = Party{Fragment: owner}
				break
			}
		}
		l.parties[c] = p
	}
	return p
}

// A base chain of iptables belongs to a program if it jumps only to this program's chains.
func programOf(t *eval.Table, c *eval.Chain) Party {
	own := partyOf(t.ID, c.Decl.Name)
	if own.Program != "" || c.Decl.Base == nil {
		return own
	}
	rules := rulesOf(c)
	for i := range rules {
		v, _ := verdictOf(&rules[i])
		switch to := partyOf(t.ID, v.Chain); {
		case to.Program == "" || to == own:
		case own.Program != "":
			return partyOf(t.ID, c.Decl.Name)
		default:
			own = to
		}
	}
	return own
}

func (l *linter) place(t *eval.Table, c *eval.Chain, r *eval.Rule) Place {
	p := Place{Party: l.party(t, c, r), Table: t.ID, Chain: c.Decl.Name}
	if r != nil {
		p.Rule = r.String()
	}
	return p
}

func (l *linter) chainOf(t *eval.Table, name string) *eval.Chain {
	index, ok := l.chains[t]
	if !ok {
		index = make(map[string]*eval.Chain, len(t.Chains))
		for i := range t.Chains {
			index[t.Chains[i].Decl.Name] = &t.Chains[i]
		}
		l.chains[t] = index
	}
	return index[name]
}
