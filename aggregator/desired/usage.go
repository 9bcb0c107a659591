package desired

import (
	"github.com/weft-proxy/weft/aggregator/desired/packed"
	"github.com/weft-proxy/weft/nft/cost"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// Usage is how much a publisher holds, all its fragments together.
type Usage struct {
	Fragments, Chains, Rules, Sets, Elements int
	// Objects are named objects and flowtables.
	Objects int
	// Bytes are those of rule texts, packed elements, names and comments. An
	// adopted rule's text is not known, and counts nothing.
	Bytes int
	// LogRate is how many packets an hour the rules log at most. An adopted rule's rate is
	// not known, and counts nothing.
	LogRate int
	// BaseChains are those of Chains that have a hook.
	BaseChains int
	// Anonymous counts the elements of the anonymous sets and maps of rules. They are not
	// in Elements. Those of adopted rules are not known.
	Anonymous int
	// Memory is about how much memory of the kernel it takes, in bytes: see package cost.
	Memory int
}

func (u *Usage) add(o Usage, by int) {
	u.Fragments += by * o.Fragments
	u.Chains += by * o.Chains
	u.Rules += by * o.Rules
	u.Sets += by * o.Sets
	u.Objects += by * o.Objects
	u.Elements += by * o.Elements
	u.Bytes += by * o.Bytes
	u.LogRate += by * o.LogRate
	u.BaseChains += by * o.BaseChains
	u.Anonymous += by * o.Anonymous
	u.Memory += by * o.Memory
}

// The most that one fragment holds, whether it comes as one snapshot or grows by patches: a
// snapshot can always send again what patches have reached.
const (
	MaxTables   = 64
	MaxChains   = 1_000_000
	MaxSets     = 1_000_000
	MaxObjects  = 1_000_000
	MaxRules    = 4_000_000
	MaxElements = 8_000_000
)

// checkSize rejects an update that makes its fragment too large.
func (a *apply) checkSize(f *fragment) {
	for _, c := range []struct {
		n, most int
		what    string
	}{
		{len(f.tables), MaxTables, "tables"},
		{f.holds.Chains, MaxChains, "chains"},
		{f.holds.Sets, MaxSets, "sets and maps"},
		{f.holds.Objects, MaxObjects, "named objects and flowtables"},
		{f.holds.Rules, MaxRules, "rules"},
		{f.holds.Elements, MaxElements, "elements"},
	} {
		if c.n > c.most {
			a.violate(ReasonLimit, Place{}, "the fragment would have %d %s: at most %d are allowed: split it into several fragments", c.n, c.what, c.most)
		}
	}
}

// Limit returns why a publisher that holds before must not come to hold after with an
// update that has an effect, or nil.
type Limit func(before, after Usage, effect Effect) error

// Usage returns what a publisher holds. It looks it up: the sum is kept with each change.
func (s *State) Usage(publisher string) Usage { return s.usage[publisher] }

// ApplyWithin is Apply for a publisher with limits. On an error nothing has
// changed, including the publisher's usage. limit must not be nil. It is called after
// the merge of an update that is valid so far. grant is called for each part of others
// that the update would share; nil grants everything. Both must not use the State.
//
// Possible errors: those of Apply; limit's.
func (s *State) ApplyWithin(u *Update, limit Limit, grant Grant) error {
	return s.change(u.Fragment, func(a *apply) {
		a.grant = grant
		a.update(u)
	}, limit)
}

// charge adds (by is +1) or removes (-1) usage of a fragment. It is its own
// inverse and writes no journal: its callers do.
func (s *State) charge(f *fragment, o Usage, by int) {
	if o == (Usage{}) {
		return
	}
	if f.holds.add(o, by); f.unclaimed {
		return
	}
	u := s.usage[f.key.Publisher]
	u.add(o, by)
	if u == (Usage{}) {
		delete(s.usage, f.key.Publisher)
		return
	}
	s.usage[f.key.Publisher] = u
}

// chargeElement counts the change of one element of a share.
func (s *State) chargeElement(sh *setShare, id string, old nftset.Element, had bool, e nftset.Element, has bool) {
	var u Usage
	u.Memory -= sh.content.Memory(sh.decl)
	if had {
		u.add(Usage{Elements: 1, Bytes: packed.Bytes(id, &old)}, -1)
		sh.content.Add(sh.decl, &old, -1)
	}
	if has {
		u.add(Usage{Elements: 1, Bytes: packed.Bytes(id, &e)}, +1)
		sh.content.Add(sh.decl, &e, +1)
	}
	u.Memory += sh.content.Memory(sh.decl)
	sh.bytes += u.Bytes
	s.charge(sh.fragment, u, +1)
}

// usage returns the share's usage; bytes and content must be up to date.
func (sh *setShare) usage() Usage {
	return Usage{
		Sets: 1, Elements: sh.elements.Len(), Bytes: sh.bytes + len(sh.decl.Name) + len(sh.decl.Comment), Memory: sh.content.Memory(sh.decl),
	}
}

// weigh counts the bytes and the content of a share that was made with its elements.
func (sh *setShare) weigh() {
	sh.bytes = sh.elements.Bytes()
	sh.measure()
}

// measure counts the content of a share for the present declaration.
func (sh *setShare) measure() {
	sh.content = cost.Content{}
	if cost.Plain(sh.decl) {
		sh.content.Elements = sh.elements.Len()
		for comment, state := range sh.elements.Texts() {
			sh.content.Options(comment, state, 1)
		}
		return
	}
	for _, e := range sh.elements.All() {
		sh.content.Add(sh.decl, &e, 1)
	}
}

// usage returns the share's usage.
func (sh *chainShare) usage() Usage {
	u := sh.total
	u.Chains, u.BaseChains = 1, count(sh.decl.Base != nil)
	u.Bytes += len(sh.decl.Name) + len(sh.decl.Comment)
	u.Memory += cost.Chain(sh.decl.Base != nil)
	return u
}

// weigh counts the usage of the rules.
func (l *ruleList) weigh() {
	l.total = Usage{Rules: len(l.rules)}
	for _, r := range l.rules {
		if r.adopted {
			continue
		}
		l.total.Bytes += len(r.rule.Text) + len(r.rule.Comment)
		l.total.LogRate += int(r.rule.Effects.LogRate) //nolint:gosec // at most compile.UnlimitedLog
		l.total.Memory += cost.Rule(r.rule)
		for i := range r.rule.Anonymous {
			l.total.Anonymous += len(r.rule.Anonymous[i].Elements)
		}
	}
}
