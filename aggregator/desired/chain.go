package desired

import (
	"slices"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/kernel"
	nftobject "github.com/weft-proxy/weft/nft/object"
)

// chain is the merge of one chain: each fragment's rules in order of
// precedence.
type chain struct {
	shared[*chainShare]
	// rules are those in the kernel as of the last Accept, in its order.
	rules []*slot
	// origins has the last update of each owner that changed its share since
	// the last Accept.
	origins map[string]int
	// price is what a packet pays from here on: see reach.go.
	price price
}

// chainShare is one fragment's share of a chain.
type chainShare struct {
	fragment *fragment
	decl     *nftobject.Chain
	// source is the declaration as its publisher wrote it; nil if that is not
	// known.
	source *nft.Chain
	ruleList
}

// ruleList is a share's rules.
type ruleList struct {
	rules []*slot
	// refs are the parts of the table that the rules refer to, sorted.
	refs []objectID
	// serial is the number of the change that brought the rules.
	serial uint64
	// total is the usage of the rules.
	total Usage
	// calls are what the rules look up and where they send packets, in the order of the rules.
	// price is that of the rules alone. ends is true if no packet gets to the end.
	calls []call
	price price
	ends  bool
}

// slot is one rule in its place.
type slot struct {
	rule *compile.Rule
	// owner is stored with the rule in the kernel: the fragment's name, or "" for
	// a rule without a fragment.
	owner string
	// handle is nil until the rule is committed.
	handle *kernel.Handle
	// adopted is true for a rule that is known by its handle and fingerprint
	// alone: it can stay or go, but not be added.
	adopted bool
}

// decl is the declaration; all shares agree on it.
func (o *chain) decl() *nftobject.Chain { return o.shares[0].decl }

// merged returns the rules in order of precedence.
func (o *chain) merged() []*slot {
	n := 0
	for _, sh := range o.shares {
		n += len(sh.rules)
	}
	all := make([]*slot, 0, n)
	for _, sh := range o.shares {
		all = append(all, sh.rules...)
	}
	return all
}

func (o *chain) declared() any { return o.decl() }

func (o *chain) remade(before any) bool { return !updatable(before.(*nftobject.Chain), o.decl()) }

func (o *chain) addition() kernel.Op { return kernel.AddChain{Table: o.table.id, Chain: o.decl()} }

func (o *chain) removal(any) []kernel.Op {
	return []kernel.Op{kernel.DeleteChain{Table: o.table.id, Name: o.id.Name}}
}

func (o *chain) link(s *State, sh share, in, _ bool) {
	mine := sh.(*chainShare)
	if o.exists() {
		s.attach(o, o.decl().Base, false)
	}
	o.place(s, mine, in)
	if o.exists() {
		s.attach(o, o.decl().Base, true)
	}
	s.referAll(o, mine, in)
	s.outdate(o)
	s.countRules(o.table, mine.rules, in)
}

func (o *chain) accept(plan *decision) {
	o.rules = plan.orders[o]
}

func (o *chain) clearChanges() { o.origins = nil }

// newRules makes a share's rules.
func newRules(f *fragment, rules []*compile.Rule, serial uint64) ruleList {
	l := ruleList{rules: make([]*slot, len(rules)), serial: serial}
	for i, r := range rules {
		l.rules[i] = &slot{rule: r, owner: f.owner}
		l.refs = appendReferences(l.refs, r)
	}
	l.refs = sortIDs(l.refs)
	l.weigh()
	l.trace()
	return l
}

// stampOwner makes the running update the origin of an owner's rules.
func (s *State) stampOwner(o *chain, owner string) {
	if origin, ok := o.origins[owner]; ok && origin == s.origin {
		return
	}
	if o.origins == nil {
		o.origins = map[string]int{}
	}
	enter(s, o.origins, owner, s.origin, true)
}

// setRules replaces a share's rules.
func (s *State) setRules(o *chain, sh *chainShare, l ruleList) {
	s.changed(o, sh.fragment)
	do(s, func(l ruleList) {
		s.work.Rules += uint64(len(sh.rules) + len(l.rules))
		changed := !slices.Equal(sh.refs, l.refs)
		if changed {
			s.referAll(o, sh, false)
		}
		s.charge(sh.fragment, sh.total, -1)
		s.charge(sh.fragment, l.total, +1)
		s.countRules(o.table, sh.rules, false)
		s.countRules(o.table, l.rules, true)
		sh.ruleList = l
		s.outdate(o)
		if changed {
			s.referAll(o, sh, true)
			s.unrecord(o)
		}
	}, l, sh.ruleList)
}

// referAll adds or removes the references of a share.
func (s *State) referAll(o *chain, sh *chainShare, in bool) {
	for _, id := range sh.refs {
		target := o.table.part(id)
		s.refer(target, sign(in))
		addTo(&target.base().callers, caller{from: o}, sign(in))
	}
}

// equalChain reports whether two declarations agree.
func equalChain(a, b *nftobject.Chain) bool {
	return a.Comment == b.Comment && sameBase(a.Base, b.Base)
}

func sameBase(a, b *nftobject.Base) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// updatable reports whether the kernel can turn a chain from a to b: of a
// base chain it can change the policy, and nothing else.
func updatable(a, b *nftobject.Chain) bool {
	if a.Comment != b.Comment {
		return false
	}
	if a.Base == nil || b.Base == nil {
		return a.Base == b.Base
	}
	x, y := *a.Base, *b.Base
	x.Drop, y.Drop = false, false
	return x == y
}
