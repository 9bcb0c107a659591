package syntax

import (
	"slices"

	"github.com/weft-proxy/weft/nft"
)

// fileTable is a table while its file is read. What is in it is in the order of its
// first mention; what was deleted is nil.
type fileTable struct {
	table      nft.Table
	chains     []*fileChain
	sets       []*fileSet
	objects    []*nft.Object
	flowtables []*nft.Flowtable
	// The indices are the places of names in them.
	chainIndex, setIndex, flowtableIndex map[string]int
	objectIndex                          map[objectName]int
	// filled are the chains that have rules.
	filled []*fileChain
	// flushes is how often the tables of the family had been flushed when this one was
	// declared.
	flushes int
}

// objectName names an object in its table.
type objectName struct {
	kind nft.ObjectKind
	name string
}

// fileSet is a set or map while its file is read.
type fileSet struct {
	nft.Set
	isMap bool
	// index are the places of keys in Elements, up to indexed; it is made when an
	// element is looked for. gone are the places that were deleted.
	index   map[string]int
	indexed int
	gone    map[int]bool
}

func newFileTable(id nft.TableID) *fileTable {
	return &fileTable{
		table:      nft.Table{Family: id.Family, Name: id.Name},
		chainIndex: map[string]int{}, setIndex: map[string]int{}, flowtableIndex: map[string]int{}, objectIndex: map[objectName]int{},
	}
}

// chain returns the chain of a name, or nil.
func (t *fileTable) chain(name string) *fileChain {
	if i, ok := t.chainIndex[name]; ok {
		return t.chains[i]
	}
	return nil
}

// set returns the set or map of a name, or nil.
func (t *fileTable) set(name string) *fileSet {
	if i, ok := t.setIndex[name]; ok {
		return t.sets[i]
	}
	return nil
}

// object returns the object of a kind and name, or nil.
func (t *fileTable) object(kind nft.ObjectKind, name string) *nft.Object {
	if i, ok := t.objectIndex[objectName{kind, name}]; ok {
		return t.objects[i]
	}
	return nil
}

// flowtable returns the flowtable of a name, or nil.
func (t *fileTable) flowtable(name string) *nft.Flowtable {
	if i, ok := t.flowtableIndex[name]; ok {
		return t.flowtables[i]
	}
	return nil
}

// build returns the finished table.
func (t *fileTable) build() nft.Table {
	out := t.table
	for _, o := range t.objects {
		if o != nil {
			out.Objects = append(out.Objects, *o)
		}
	}
	for _, f := range t.flowtables {
		if f != nil {
			out.Flowtables = append(out.Flowtables, *f)
		}
	}
	for _, c := range t.chains {
		if c != nil {
			out.Chains = append(out.Chains, c.build())
		}
	}
	for _, s := range t.sets {
		switch {
		case s == nil:
		case s.isMap:
			out.Maps = append(out.Maps, nft.Map(s.build()))
		default:
			out.Sets = append(out.Sets, s.build())
		}
	}
	return out
}

// find returns the place of an element, if it is there.
func (s *fileSet) find(key string) (int, bool) {
	if s.index == nil {
		s.index = map[string]int{}
	}
	for ; s.indexed < len(s.Elements); s.indexed++ {
		s.index[s.Elements[s.indexed].Key] = s.indexed
	}
	i, ok := s.index[key]
	return i, ok
}

// remove removes an element and reports whether it was there.
func (s *fileSet) remove(key string) bool {
	i, ok := s.find(key)
	if !ok {
		return false
	}
	if s.gone == nil {
		s.gone = map[int]bool{}
	}
	s.gone[i] = true
	delete(s.index, key)
	return true
}

// flush removes all elements.
func (s *fileSet) flush() { s.Elements, s.index, s.indexed, s.gone = nil, nil, 0, nil }

// build returns the finished set.
func (s *fileSet) build() nft.Set {
	out := s.Set
	if len(s.gone) == 0 {
		return out
	}
	out.Elements = nil
	for i := range s.Elements {
		if !s.gone[i] {
			out.Elements = append(out.Elements, s.Elements[i])
		}
	}
	return out
}

// fileChain is a chain while its file is read.
type fileChain struct {
	nft.Chain
	// head are the rules that were inserted, the last one first in the chain; tail
	// the rules behind them.
	head, tail []fileRule
}

// fileRule is a rule and where it stands in the expanded text.
type fileRule struct {
	nft.Rule
	start, end int
}

// rules returns all rules in order.
func (c *fileChain) rules() []fileRule {
	slices.Reverse(c.head)
	c.tail = append(c.head, c.tail...)
	c.head = nil
	return c.tail
}

// build returns the finished chain.
func (c *fileChain) build() nft.Chain {
	out := c.Chain
	for _, r := range c.rules() {
		out.Rules = append(out.Rules, r.Rule)
	}
	return out
}

// flush removes the rules.
func (c *fileChain) flush() { c.head, c.tail = nil, nil }
