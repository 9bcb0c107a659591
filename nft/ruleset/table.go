package ruleset

import (
	"slices"

	"github.com/weft-proxy/weft/nft"
)

// list is a list of named things in the order of their first mention.
type list[K comparable, T any] struct {
	// items are nil if they were deleted.
	items []*T
	index map[K]int
}

// get returns the thing with the given name, or nil.
func (l *list[K, T]) get(name K) *T {
	if i, ok := l.index[name]; ok {
		return l.items[i]
	}
	return nil
}

// add appends a thing and returns it.
func (l *list[K, T]) add(name K, item *T) *T {
	if l.index == nil {
		l.index = map[K]int{}
	}
	l.index[name] = len(l.items)
	l.items = append(l.items, item)
	return item
}

// remove removes the thing with the given name and reports whether it existed.
func (l *list[K, T]) remove(name K) bool {
	i, ok := l.index[name]
	if ok {
		l.items[i] = nil
		delete(l.index, name)
	}
	return ok
}

// each calls f for each thing in order.
func (l *list[K, T]) each(f func(*T)) {
	for _, item := range l.items {
		if item != nil {
			f(item)
		}
	}
}

// table is a table while its file is read.
type table struct {
	table      nft.Table
	chains     list[string, chain]
	sets       list[string, set]
	objects    list[objectName, nft.Object]
	flowtables list[string, nft.Flowtable]
	// filled are the chains that have rules.
	filled []*chain
	// updated are the sets that rules of the file change.
	updated map[string]bool
	// flushes is how often the tables of the family had been flushed when this table was
	// declared.
	flushes int
}

// objectName names an object in its table.
type objectName struct {
	kind nft.ObjectKind
	name string
}

// set is a set or map while its file is read.
type set struct {
	nft.Set
	isMap bool
	// index maps the keys of the first indexed Elements to their places. It is made when
	// an element is looked for.
	index   map[string]int
	indexed int
	// gone are the places of deleted elements.
	gone map[int]bool
}

// remove removes something of a table and reports whether it existed. Kind is the kind
// of an object, or empty; then word is chain, flowtable, set or map.
func (t *table) remove(word string, kind nft.ObjectKind, name string) bool {
	switch {
	case kind != "":
		return t.objects.remove(objectName{kind, name})
	case word == "chain":
		return t.chains.remove(name)
	case word == "flowtable":
		return t.flowtables.remove(name)
	default:
		return t.sets.remove(name)
	}
}

// build returns the finished table.
func (t *table) build() nft.Table {
	out := t.table
	t.objects.each(func(o *nft.Object) { out.Objects = append(out.Objects, *o) })
	t.flowtables.each(func(f *nft.Flowtable) { out.Flowtables = append(out.Flowtables, *f) })
	t.chains.each(func(c *chain) {
		if !c.anonymous {
			out.Chains = c.build(out.Chains)
		}
	})
	t.sets.each(func(s *set) {
		// As nft does. A set that rules cannot change is refused with the rule.
		if t.updated[s.Name] && !slices.ContainsFunc(s.Flags, func(flag string) bool { return flag == "dynamic" || flag == "interval" || flag == "constant" }) {
			s.Flags = append(s.Flags, "dynamic")
		}
		if s.isMap {
			out.Maps = append(out.Maps, nft.Map(s.build()))
		} else {
			out.Sets = append(out.Sets, s.build())
		}
	})
	return out
}

// find returns the place of the element with the given key.
func (s *set) find(key string) (int, bool) {
	if s.index == nil {
		s.index = map[string]int{}
	}
	for ; s.indexed < len(s.Elements); s.indexed++ {
		s.index[s.Elements[s.indexed].Key] = s.indexed
	}
	i, ok := s.index[key]
	return i, ok
}

// remove removes an element and reports whether it existed.
func (s *set) remove(key string) bool {
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
func (s *set) flush() { s.Elements, s.index, s.indexed, s.gone = nil, nil, 0, nil }

// build returns the finished set.
func (s *set) build() nft.Set {
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

// chain is a chain while its file is read.
type chain struct {
	nft.Chain
	// head are the rules that were inserted at the start, in reverse order. tail are the
	// rules after them.
	head, tail []rule
	// anonymous is true for a chain in braces. It belongs to its rule.
	anonymous bool
}

// rule is a rule, the offset in the expanded text at which it begins, and its text there.
type rule struct {
	nft.Rule
	start int
	text  string
	// anonymous are the chains in braces that the rule contains. In the expanded text, what
	// follows offset cut of text is further on by shift.
	anonymous  []*chain
	cut, shift int
}

// rules returns all rules in order.
func (c *chain) rules() []rule {
	slices.Reverse(c.head)
	c.tail = append(c.head, c.tail...)
	c.head = nil
	return c.tail
}

// build appends the finished chain, after the anonymous chains of its rules.
func (c *chain) build(list []nft.Chain) []nft.Chain {
	out := c.Chain
	for _, r := range c.rules() {
		out.Rules = append(out.Rules, r.Rule)
		for _, a := range r.anonymous {
			list = a.build(list)
		}
	}
	return append(list, out)
}

// flush removes the rules.
func (c *chain) flush() { c.head, c.tail = nil, nil }
