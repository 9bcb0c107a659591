package knft

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/convert"
	"github.com/weft-proxy/weft/nft"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// content is what the fragment holds: what was published last, or what is about
// to be.
type content struct {
	tables map[nft.TableID]*table
	// partial is true while some of it may be unknown.
	partial bool
}

func newContent() *content { return &content{tables: make(map[nft.TableID]*table)} }

// table is the fragment's part of a table.
type table struct {
	id      nft.TableID
	comment string
	chains  map[string]*chain
	sets    map[string]*set
	objects map[objectID]declared
}

func newTable(id nft.TableID) *table {
	return &table{id: id, chains: make(map[string]*chain), sets: make(map[string]*set), objects: make(map[objectID]declared)}
}

// chain is the fragment's part of a chain. Rules are immutable, and told apart by
// their address.
type chain struct {
	decl  *weftv1.Chain
	rules []*weftv1.Rule
	// unknown is true while rules are in force whose text is not known.
	unknown bool
}

// set is the fragment's part of a set or map. Elements are immutable.
type set struct {
	decl *weftv1.Set
	// packed is the compiled declaration: it decides which keys are equal,
	// however they are written.
	packed *nftset.Set
	// elements has them by packed key.
	elements map[string]*weftv1.Element
	// deadlines has when those with a timeout have run out in the kernel.
	deadlines map[string]time.Time
	// unknown is true while the fragment may have elements that are not here.
	unknown bool
	// adopted is true while decl comes from the kernel, which may not know how
	// it was written.
	adopted bool
}

// newSet compiles a declaration.
func newSet(family nft.Family, d *weftv1.Set, isMap bool) (*set, error) {
	s := &set{decl: d, elements: make(map[string]*weftv1.Element)}
	var err error
	s.packed, err = convert.CompileSet(family, d, isMap)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// id returns the packed key of an element.
func (s *set) id(key string) (string, error) {
	e, err := s.packed.PackKey(key)
	if err != nil {
		return "", err
	}
	return e.Key + e.KeyEnd, nil
}

// put adds elements that the aggregator holds.
func (s *set) put(elements []*weftv1.Element) error {
	for _, e := range elements {
		id, err := s.id(e.GetKey())
		if err != nil {
			return err
		}
		s.elements[id] = e
	}
	return nil
}

// message returns the set with all its elements, in the order of their keys.
func (s *set) message() *weftv1.Set {
	m := proto.CloneOf(s.decl)
	m.Elements = make([]*weftv1.Element, 0, len(s.elements))
	for _, id := range slices.Sorted(maps.Keys(s.elements)) {
		m.Elements = append(m.Elements, s.elements[id])
	}
	return m
}

// message returns the chain with all its rules.
func (c *chain) message() *weftv1.Chain {
	m := proto.CloneOf(c.decl)
	m.Rules = slices.Clone(c.rules)
	return m
}

// message returns the table with all that it holds, in order of names.
func (t *table) message() *weftv1.Table {
	m := &weftv1.Table{Family: t.id.Family.String(), Name: t.id.Name, Comment: t.comment}
	for _, id := range sortedObjects(t.objects) {
		if d := t.objects[id]; d.flowtable != nil {
			m.Flowtables = append(m.Flowtables, d.flowtable)
		} else {
			m.Objects = append(m.Objects, d.counter)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.chains)) {
		m.Chains = append(m.Chains, t.chains[name].message())
	}
	for _, name := range slices.Sorted(maps.Keys(t.sets)) {
		s := t.sets[name]
		if s.packed.Map {
			m.Maps = append(m.Maps, s.message())
		} else {
			m.Sets = append(m.Sets, s.message())
		}
	}
	return m
}

// sortedObjects returns the counters and flowtables that a map is of, in a fixed
// order.
func sortedObjects[V any](m map[objectID]V) []objectID {
	return slices.SortedFunc(maps.Keys(m), func(a, b objectID) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name))
	})
}

// fragment returns the content as a snapshot; nil where there is none. The
// caller holds mu.
func (a *Adapter) fragment() *weftv1.Fragment {
	if len(a.content.tables) == 0 {
		return nil
	}
	f := &weftv1.Fragment{Name: a.cfg.Fragment, Priority: a.cfg.Priority, Lifetime: a.cfg.Lifetime}
	for _, id := range sortedIDs(a.content.tables) {
		f.Tables = append(f.Tables, a.content.tables[id].message())
	}
	return f
}

// sortedIDs returns the tables that a map is of, in a fixed order.
func sortedIDs[V any](m map[nft.TableID]V) []nft.TableID {
	return slices.SortedFunc(maps.Keys(m), func(a, b nft.TableID) int {
		return cmp.Or(cmp.Compare(a.Family, b.Family), cmp.Compare(a.Name, b.Name))
	})
}

// unknown returns the first object of which something is not known, such as "rules
// of table ip t chain c", or "".
func (c *content) unknown() string {
	if !c.partial {
		return ""
	}
	for _, id := range sortedIDs(c.tables) {
		t := c.tables[id]
		for _, name := range slices.Sorted(maps.Keys(t.chains)) {
			if t.chains[name].unknown {
				return "rules of table " + id.String() + " chain " + name
			}
		}
		for _, name := range slices.Sorted(maps.Keys(t.sets)) {
			if t.sets[name].unknown {
				return "elements of table " + id.String() + " set " + name
			}
		}
	}
	return ""
}
