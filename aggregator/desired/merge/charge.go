package merge

import (
	"maps"
	"slices"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/packed"
	"github.com/weft-proxy/weft/nft/cost"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// ledger has the usage of each publisher, and the shadowed elements.
type ledger struct {
	// Held is by publisher, without empty usage. shaded are the fragments for TakeShadowChanges.
	Held     map[string]desired.Usage
	shadowed int
	shaded   map[desired.Key]struct{}
}

func (l *ledger) Shadowed() int { return l.shadowed }

func (l *ledger) Usage(publisher string) desired.Usage { return l.Held[publisher] }

// TakeShadowChanges returns, in no order, fragments with a possibly different Shadowed since the
// last call, also withdrawn ones.
func (l *ledger) TakeShadowChanges() []desired.Key {
	keys := slices.Collect(maps.Keys(l.shaded))
	clear(l.shaded)
	return keys
}

// charge adds (by is +1) or removes (-1) usage.
func (l *ledger) charge(f *Fragment, o desired.Usage, by int) {
	if o == (desired.Usage{}) {
		return
	}
	if f.Holds.Add(o, by); f.Unclaimed {
		return
	}
	u := l.Held[f.Key.Publisher]
	u.Add(o, by)
	setKey(l.Held, f.Key.Publisher, u, u != desired.Usage{})
}

func (l *ledger) shade(sh *SetShare, by int) {
	sh.Shadowed += by
	sh.Fragment.Shadowed += by
	l.shadowed += by
	l.shaded[sh.Fragment.Key] = struct{}{}
}

func (a *Apply) checkSize(f *Fragment) {
	for _, c := range []struct {
		n, most int
		what    string
	}{
		{len(f.Tables), desired.MaxTables, "tables"},
		{f.Holds.Chains, desired.MaxChains, "chains"},
		{f.Holds.Sets, desired.MaxSets, "sets and maps"},
		{f.Holds.Objects, desired.MaxObjects, "named objects and flowtables"},
		{f.Holds.Rules, desired.MaxRules, "rules"},
		{f.Holds.Elements, desired.MaxElements, "elements"},
	} {
		if c.n > c.most {
			a.violate(desired.ReasonLimit, desired.Place{}, "the fragment would have %d %s: at most %d are allowed: split it into several fragments", c.n, c.what, c.most)
		}
	}
}

func (sh *SetShare) charge(l *ledger, id string, old nftset.Element, had bool, e nftset.Element, has bool) {
	var u desired.Usage
	u.Memory -= sh.Content.Memory(sh.Decl)
	if had {
		u.Add(desired.Usage{Elements: 1, Bytes: packed.Bytes(id, &old)}, -1)
		sh.Content.Add(sh.Decl, &old, -1)
	}
	if has {
		u.Add(desired.Usage{Elements: 1, Bytes: packed.Bytes(id, &e)}, +1)
		sh.Content.Add(sh.Decl, &e, +1)
	}
	u.Memory += sh.Content.Memory(sh.Decl)
	sh.bytes += u.Bytes
	l.charge(sh.Fragment, u, +1)
}

// Usage needs current bytes and Content.
func (sh *SetShare) Usage() desired.Usage {
	return desired.Usage{
		Sets: 1, Elements: sh.Elements.Len(), Bytes: sh.bytes + len(sh.Decl.Name) + len(sh.Decl.Comment), Memory: sh.Content.Memory(sh.Decl),
	}
}

// Weigh counts a share that was made with its elements.
func (sh *SetShare) Weigh() {
	sh.bytes = sh.Elements.Bytes()
	sh.measure()
}

func (sh *SetShare) measure() {
	sh.Content = cost.Content{}
	if cost.Plain(sh.Decl) {
		sh.Content.Elements = sh.Elements.Len()
		for comment, state := range sh.Elements.Texts() {
			sh.Content.Options(comment, state, 1)
		}
		return
	}
	for _, e := range sh.Elements.All() {
		sh.Content.Add(sh.Decl, &e, 1)
	}
}

func (sh *ChainShare) Usage() desired.Usage {
	u := sh.total
	u.Chains, u.BaseChains = 1, Count(sh.Decl.Base != nil)
	u.Bytes += len(sh.Decl.Name) + len(sh.Decl.Comment)
	u.Memory += cost.Chain(sh.Decl.Base != nil)
	return u
}

func (l *ruleList) Weigh() {
	l.total = desired.Usage{Rules: len(l.Rules)}
	for _, r := range l.Rules {
		if r.Adopted {
			continue
		}
		l.total.Bytes += len(r.Rule.Text) + len(r.Rule.Comment)
		l.total.LogRate += int(r.Rule.Effects.LogRate) //nolint:gosec // at most compile.UnlimitedLog
		l.total.Memory += cost.Rule(r.Rule)
		for i := range r.Rule.Anonymous {
			l.total.Anonymous += len(r.Rule.Anonymous[i].Elements)
		}
	}
}
