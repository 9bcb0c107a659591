package ruleset

import (
	"slices"

	"github.com/weft-proxy/weft/nft"
)

// In the order of their first mention.
type list[K comparable, T any] struct {
	// nil for deleted items
	items []*T
	index map[K]int
}

func (l *list[K, T]) get(name K) *T {
	if i, ok := l.index[name]; ok {
		return l.items[i]
	}
	return nil
}

func (l *list[K, T]) add(name K, item *T) *T {
	if l.index == nil {
		l.index = map[K]int{}
	}
	l.index[name] = len(l.items)
	l.items = append(l.items, item)
	return item
}

func (l *list[K, T]) remove(name K) bool {
	i, ok := l.index[name]
	if ok {
		l.items[i] = nil
		delete(l.index, name)
	}
	return ok
}

func (l *list[K, T]) each(f func(*T)) {
	for _, item := range l.items {
		if item != nil {
			f(item)
		}
	}
}

// registry holds the tables of a file.
type registry struct {
	tables map[nft.TableID]*table
	// in the order of their first mention, including deleted ones
	order []*table
	// "flush ruleset" commands of each family; the last one deletes earlier tables
	flushes map[nft.Family]int
	// deleted or not
	mentioned map[nft.TableID]bool
}

func (r *registry) table(id nft.TableID) *table {
	if t := r.tables[id]; t != nil && t.flushes == r.flushes[id.Family] {
		return t
	}
	return nil
}

func (r *registry) addTable(id nft.TableID) *table {
	t := r.table(id)
	if t == nil {
		t = &table{table: nft.Table{Family: id.Family, Name: id.Name}}
		t.flushes = r.flushes[id.Family]
		r.tables[id] = t
		r.mentioned[id] = true
		r.order = append(r.order, t)
	}
	return t
}

func (r *registry) build() []nft.Table {
	tables := make([]nft.Table, 0, len(r.order))
	for _, t := range r.order {
		if r.table(t.table.ID()) == t {
			tables = append(tables, t.build())
		}
	}
	return tables
}

type table struct {
	table      nft.Table
	chains     list[string, chain]
	sets       list[string, set]
	objects    list[objectName, nft.Object]
	flowtables list[string, nft.Flowtable]
	filled     []*chain
	// sets changed by rules of the file
	updated map[string]bool
	// earlier flushes of the family
	flushes int
}

type objectName struct {
	kind nft.ObjectKind
	name string
}

type set struct {
	nft.Set
	isMap bool
	// keys of the first indexed Elements; built by the first search
	index   map[string]int
	indexed int
	// deleted elements
	gone map[int]bool
}

// kind is the kind of an object, or empty; then word is chain, flowtable, set or map.
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
		// nft adds the flag too. If rules cannot change the set, the rule is refused.
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

func (s *set) flush() { s.Elements, s.index, s.indexed, s.gone = nil, nil, 0, nil }

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

type chain struct {
	nft.Chain
	// head: rules inserted at the start, in reverse order
	head, tail []rule
	// in braces, owned by its rule
	anonymous bool
}

type rule struct {
	nft.Rule
	// offset in the expanded text
	start int
	// expanded, with names in place of anonymous chains
	text string
	// In the expanded text, the part after offset cut of text is shifted by shift.
	anonymous  []*chain
	cut, shift int
}

func (c *chain) rules() []rule {
	slices.Reverse(c.head)
	c.tail = append(c.head, c.tail...)
	c.head = nil
	return c.tail
}

// The anonymous chains of the rules come first.
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

func (c *chain) flush() { c.head, c.tail = nil, nil }
