package desired

import nftset "github.com/weft-proxy/weft/nft/set"

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
}

// Limit returns why a publisher that holds before must not come to hold after,
// or nil.
type Limit func(before, after Usage) error

// Usage returns what a publisher holds. It looks it up: the sum is kept with each change.
func (s *State) Usage(publisher string) Usage { return s.usage[publisher] }

// ApplyWithin is Apply for a publisher with limits. On an error nothing has
// changed, including the publisher's usage. limit must not be nil. It is called after
// the merge of an update that is valid so far, and must not use the State.
//
// Possible errors: those of Apply; limit's.
func (s *State) ApplyWithin(u *Update, limit Limit) error {
	return s.change(u.Fragment, func(a *apply) {
		before := s.Usage(u.Fragment.Publisher)
		a.update(u)
		if a.err == nil && len(a.violations) == 0 {
			a.err = limit(before, s.Usage(u.Fragment.Publisher))
		}
	})
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
	if had {
		u.add(Usage{Elements: 1, Bytes: elementBytes(id, &old)}, -1)
	}
	if has {
		u.add(Usage{Elements: 1, Bytes: elementBytes(id, &e)}, +1)
	}
	sh.bytes += u.Bytes
	s.charge(sh.fragment, u, +1)
}

// usage returns the share's usage; bytes must be up to date.
func (sh *setShare) usage() Usage {
	return Usage{Sets: 1, Elements: sh.elements.len(), Bytes: sh.bytes + len(sh.decl.Name) + len(sh.decl.Comment)}
}

// weigh counts the bytes of a share that was made with its elements.
func (sh *setShare) weigh() { sh.bytes = sh.elements.bytes() }

// usage returns the share's usage.
func (sh *chainShare) usage() Usage {
	u := rulesUsage(sh.rules)
	u.Chains = 1
	u.Bytes += len(sh.decl.Name) + len(sh.decl.Comment)
	return u
}

func rulesUsage(rules []*slot) Usage {
	u := Usage{Rules: len(rules)}
	for _, r := range rules {
		if !r.adopted {
			u.Bytes += len(r.rule.Text) + len(r.rule.Comment)
			u.LogRate += int(r.rule.Effects.LogRate) //nolint:gosec // at most compile.UnlimitedLog
		}
	}
	return u
}
