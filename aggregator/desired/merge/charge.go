package merge

import (
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/packed"
	"github.com/weft-proxy/weft/nft/cost"
	nftset "github.com/weft-proxy/weft/nft/set"
)

func (s *State) Shadowed() int { return s.shadowed }

// TakeShadowChanges returns, in no order, fragments with a possibly different Shadowed since the
// last call.
func (s *State) TakeShadowChanges() []desired.Key {
	if len(s.shaded) == 0 {
		return nil
	}
	keys := make([]desired.Key, 0, len(s.shaded))
	for f := range s.shaded {
		if s.Fragments[f.Key] == f {
			keys = append(keys, f.Key)
		}
	}
	clear(s.shaded)
	return keys
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

// Usage returns the usage of a publisher.
func (s *State) Usage(publisher string) desired.Usage { return s.Held[publisher] }

// ApplyWithin is Apply for a publisher with limits. It calls limit, not nil, after a merge without
// violations, and grant for each shared part of others; nil grants all. Both must not use the
// State.
//
// Possible errors: as Apply; limit's.
func (s *State) ApplyWithin(u *desired.Update, limit desired.Limit, grant desired.Grant) error {
	return s.Change(u.Fragment, func(a *Apply) {
		a.grant = grant
		a.update(u)
	}, limit)
}

// charge adds (by is +1) or removes (-1) usage, without journal.
func (s *State) charge(f *Fragment, o desired.Usage, by int) {
	if o == (desired.Usage{}) {
		return
	}
	if f.Holds.Add(o, by); f.Unclaimed {
		return
	}
	u := s.Held[f.Key.Publisher]
	u.Add(o, by)
	if u == (desired.Usage{}) {
		delete(s.Held, f.Key.Publisher)
		return
	}
	s.Held[f.Key.Publisher] = u
}

func (s *State) chargeElement(sh *SetShare, id string, old nftset.Element, had bool, e nftset.Element, has bool) {
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
	s.charge(sh.Fragment, u, +1)
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
