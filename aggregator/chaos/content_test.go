package chaos

import (
	"maps"
	"slices"
	"strings"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// content is what a fragment holds. Values are immutable once a command was
// made of them; nil stands for a fragment that is not there.
type content struct {
	priority int32
	lifetime weftv1.Lifetime
	// tables are by "family name".
	tables map[string]*table
}

type table struct {
	chains map[string]*chain
	sets   map[string]*set
}

// chain is a declaration and the fragment's rules.
type chain struct {
	// base is "type hook priority" of a base chain, in nft's words.
	base  [3]string
	rules []rule
}

type rule struct {
	text, comment string
	// needs are the names of the sets and chains that the rule refers to.
	needs []string
}

// set is the declaration of a set or map, and the fragment's elements by key.
type set struct {
	isMap, conntrack bool
	typ, comment     string
	flags            []string
	size             uint32
	elements         map[string]element
}

// element is a map's value ("" in a set) and a comment.
type element struct{ value, comment string }

func (c *content) clone() *content {
	n := &content{priority: c.priority, lifetime: c.lifetime, tables: make(map[string]*table, len(c.tables))}
	for id, t := range c.tables {
		n.tables[id] = t.clone()
	}
	return n
}

func (t *table) clone() *table {
	n := &table{chains: make(map[string]*chain, len(t.chains)), sets: make(map[string]*set, len(t.sets))}
	for name, c := range t.chains {
		n.chains[name] = &chain{base: c.base, rules: slices.Clone(c.rules)}
	}
	for name, s := range t.sets {
		n.sets[name] = s.clone()
	}
	return n
}

func (s *set) clone() *set {
	n := *s
	n.elements = maps.Clone(s.elements)
	return &n
}

// declaresLike reports whether two sets differ in their elements alone.
func (s *set) declaresLike(o *set) bool {
	return s.isMap == o.isMap && s.conntrack == o.conntrack && s.typ == o.typ && s.comment == o.comment &&
		slices.Equal(s.flags, o.flags) && s.size == o.size
}

func (c *chain) equal(o *chain) bool {
	return c.base == o.base && slices.EqualFunc(c.rules, o.rules, func(a, b rule) bool { return a.text == b.text && a.comment == b.comment })
}

// table returns a table of the content, made when it is new.
func (c *content) table(id string) *table {
	if c.tables[id] == nil {
		c.tables[id] = &table{chains: make(map[string]*chain), sets: make(map[string]*set)}
	}
	return c.tables[id]
}

// elements counts the elements of all sets.
func (c *content) elements() (n int) {
	for _, t := range c.tables {
		for _, s := range t.sets {
			n += len(s.elements)
		}
	}
	return n
}

// fragment returns the content as a message.
func (c *content) fragment(name string) *weftv1.Fragment {
	f := &weftv1.Fragment{Name: name, Priority: c.priority, Lifetime: c.lifetime}
	for _, id := range sorted(c.tables) {
		t := c.tables[id]
		family, tableName, _ := strings.Cut(id, " ")
		m := &weftv1.Table{Family: family, Name: tableName}
		for _, name := range sorted(t.chains) {
			m.Chains = append(m.Chains, t.chains[name].message(name))
		}
		for _, name := range sorted(t.sets) {
			s := t.sets[name]
			if !s.isMap {
				m.Sets = append(m.Sets, s.message(name))
				continue
			}
			m.Maps = append(m.Maps, s.message(name))
		}
		f.Tables = append(f.Tables, m)
	}
	return f
}

func (c *chain) message(name string) *weftv1.Chain {
	m := &weftv1.Chain{Name: name}
	if c.base[0] != "" {
		m.Type, m.Hook, m.Priority, m.Policy = c.base[0], c.base[1], c.base[2], "accept"
	}
	for _, r := range c.rules {
		m.Rules = append(m.Rules, &weftv1.Rule{Text: r.text, Comment: r.comment})
	}
	return m
}

func (s *set) message(name string) *weftv1.Set {
	m := &weftv1.Set{Name: name, Type: s.typ, Flags: s.flags, Size: s.size, Comment: s.comment}
	if s.conntrack {
		m.Role = weftv1.MapRole_MAP_ROLE_CONNTRACK
	}
	for _, key := range sorted(s.elements) {
		m.Elements = append(m.Elements, s.elements[key].message(key))
	}
	return m
}

func (e element) message(key string) *weftv1.Element {
	return &weftv1.Element{Key: key, Value: e.value, Comment: e.comment}
}

// patch returns the patch from one content to another, or nil where only a
// snapshot leads there.
func patch(name string, from, to *content) *weftv1.Patch {
	if from == nil || to == nil || from.priority != to.priority || from.lifetime != to.lifetime {
		return nil
	}
	p := &weftv1.Patch{Fragment: name}
	for id := range from.tables {
		if to.tables[id] == nil {
			return nil
		}
	}
	for _, id := range sorted(to.tables) {
		old := from.tables[id]
		if old == nil {
			old = &table{}
		}
		if m := patchTable(id, old, to.tables[id]); m != nil || from.tables[id] == nil {
			p.Tables = append(p.Tables, m)
		}
	}
	if slices.Contains(p.Tables, nil) {
		// A table that is new and empty has no patch.
		return nil
	}
	return p
}

func patchTable(id string, from, to *table) *weftv1.TablePatch {
	family, tableName, _ := strings.Cut(id, " ")
	m := &weftv1.TablePatch{Family: family, Name: tableName}
	changed := false
	for _, name := range sorted(from.chains) {
		if to.chains[name] == nil {
			m.DeleteChains, changed = append(m.DeleteChains, name), true
		}
	}
	for _, name := range sorted(from.sets) {
		if to.sets[name] == nil {
			m.DeleteSets, changed = append(m.DeleteSets, name), true
		}
	}
	for _, name := range sorted(to.chains) {
		if old := from.chains[name]; old == nil || !old.equal(to.chains[name]) {
			m.PutChains, changed = append(m.PutChains, to.chains[name].message(name)), true
		}
	}
	for _, name := range sorted(to.sets) {
		old, s := from.sets[name], to.sets[name]
		switch {
		case old != nil && old.declaresLike(s):
			if e := patchElements(name, old, s); e != nil {
				m.Elements, changed = append(m.Elements, e), true
			}
		case s.isMap:
			m.PutMaps, changed = append(m.PutMaps, s.message(name)), true
		default:
			m.PutSets, changed = append(m.PutSets, s.message(name)), true
		}
	}
	if !changed {
		return nil
	}
	return m
}

func patchElements(name string, from, to *set) *weftv1.ElementPatch {
	p := &weftv1.ElementPatch{Set: name}
	for _, key := range sorted(from.elements) {
		if _, ok := to.elements[key]; !ok {
			p.Remove = append(p.Remove, key)
		}
	}
	for _, key := range sorted(to.elements) {
		if old, ok := from.elements[key]; !ok || old != to.elements[key] {
			p.Add = append(p.Add, to.elements[key].message(key))
		}
	}
	if len(p.Add)+len(p.Remove) == 0 {
		return nil
	}
	return p
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
