package merge

import (
	"slices"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/kernel"
	nftobject "github.com/weft-proxy/weft/nft/object"
)

type Chain struct {
	shared[*ChainShare]
	// Rules are the kernel's as of the last Accept.
	Rules []*Slot
	// Origins has by owner the last update since Accept that changed its share.
	Origins map[string]int
	// Price is for a packet from here on: see reach.go.
	Price Price
}

type ChainShare struct {
	Fragment *Fragment
	Decl     *nftobject.Chain
	// Source is the publisher's declaration, nil if unknown.
	Source *nft.Chain
	ruleList
}

type ruleList struct {
	Rules []*Slot
	// Refs are the sorted references of the rules.
	Refs []ObjectID
	// serial numbers the change that brought the rules.
	serial uint64
	total  desired.Usage
	// calls are the lookups and targets in order. price is for the rules alone. ends is true if no
	// packet gets to the end.
	calls []call
	price Price
	ends  bool
}

type Slot struct {
	Rule *compile.Rule
	// Owner is stored in the kernel: "publisher/name", or "".
	Owner string
	// Handle is nil until the commit.
	Handle *kernel.Handle
	// Adopted rules have only a handle and a fingerprint: they can stay or go, but not be added.
	Adopted bool
}

// Decl is the declaration; all shares agree on it.
func (o *Chain) Decl() *nftobject.Chain { return o.Shares[0].Decl }

func (o *Chain) Merged() []*Slot {
	n := 0
	for _, sh := range o.Shares {
		n += len(sh.Rules)
	}
	all := make([]*Slot, 0, n)
	for _, sh := range o.Shares {
		all = append(all, sh.Rules...)
	}
	return all
}

func (o *Chain) Declared() any { return o.Decl() }

func (o *Chain) Remade(before any) bool { return !Updatable(before.(*nftobject.Chain), o.Decl()) }

func (o *Chain) Addition() kernel.Op { return kernel.AddChain{Table: o.Table.ID, Chain: o.Decl()} }

func (o *Chain) Removal(any) []kernel.Op {
	return []kernel.Op{kernel.DeleteChain{Table: o.Table.ID, Name: o.ID.Name}}
}

func (o *Chain) link(s *State, sh Share, in, _ bool) {
	mine := sh.(*ChainShare)
	if o.Exists() {
		s.Paths.attach(o, o.Decl().Base, false)
	}
	o.place(&s.ledger, mine, in)
	if o.Exists() {
		s.Paths.attach(o, o.Decl().Base, true)
	}
	mine.referAll(&s.marks, o, in)
	s.Paths.outdate(o)
	o.Table.countRules(&s.marks, mine.Rules, in)
}

func (o *Chain) Accept(plan *Decision) {
	o.Rules = plan.Orders[o]
}

func (o *Chain) clearChanges() { o.Origins = nil }

func newRules(f *Fragment, rules []*compile.Rule, serial uint64) ruleList {
	l := ruleList{Rules: make([]*Slot, len(rules)), serial: serial}
	for i, r := range rules {
		l.Rules[i] = &Slot{Rule: r, Owner: f.Owner}
		l.Refs = AppendReferences(l.Refs, r)
	}
	l.Refs = SortIDs(l.Refs)
	l.Weigh()
	l.trace()
	return l
}

func (o *Chain) stampOwner(j *journal, owner string) {
	if origin, ok := o.Origins[owner]; ok && origin == j.Origin {
		return
	}
	if o.Origins == nil {
		o.Origins = map[string]int{}
	}
	enter(j, o.Origins, owner, j.Origin, true)
}

func (o *Chain) setRules(s *State, sh *ChainShare, l ruleList) {
	s.changed(o, sh.Fragment)
	do(&s.journal, func(l ruleList) {
		s.Looked.Rules += uint64(len(sh.Rules) + len(l.Rules))
		changed := !slices.Equal(sh.Refs, l.Refs)
		if changed {
			sh.referAll(&s.marks, o, false)
		}
		s.charge(sh.Fragment, sh.total, -1)
		s.charge(sh.Fragment, l.total, +1)
		o.Table.countRules(&s.marks, sh.Rules, false)
		o.Table.countRules(&s.marks, l.Rules, true)
		sh.ruleList = l
		s.Paths.outdate(o)
		if changed {
			sh.referAll(&s.marks, o, true)
			s.unrecord(o)
		}
	}, l, sh.ruleList)
}

func (sh *ChainShare) referAll(m *marks, o *Chain, in bool) {
	for _, id := range sh.Refs {
		target := o.Table.Part(id)
		m.refer(target, sign(in))
		addTo(&target.Base().Callers, caller{From: o}, sign(in))
	}
}

func EqualChain(a, b *nftobject.Chain) bool {
	return a.Comment == b.Comment && sameBase(a.Base, b.Base)
}

func sameBase(a, b *nftobject.Base) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// Updatable reports whether the kernel can change chain a to b: only the policy of a base chain.
func Updatable(a, b *nftobject.Chain) bool {
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
