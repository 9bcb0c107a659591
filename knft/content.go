package knft

import (
	"cmp"
	"fmt"
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
	items   map[itemID]item
}

// item is a declaration: a *chain, a *set, a *weftv1.Object (a counter) or a
// *weftv1.Flowtable.
type item any

// itemID names an item in its table.
type itemID struct {
	kind kind
	name string
}

// newItemID returns the name of an object. As in nft(8), a map is a kind of set.
func newItemID(k kind, name string) itemID {
	if k == kindMap {
		k = kindSet
	}
	return itemID{k, name}
}

func newTable(id nft.TableID) *table { return &table{id: id, items: make(map[itemID]item)} }

// chain returns the chain with a name, or nil.
func (t *table) chain(name string) *chain {
	o, _ := t.items[itemID{kindChain, name}].(*chain)
	return o
}

// set returns the set or map with a name, or nil.
func (t *table) set(name string) *set {
	s, _ := t.items[itemID{kindSet, name}].(*set)
	return s
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
	packed, err := convert.CompileSet(family, d, isMap)
	if err != nil {
		return nil, err
	}
	return makeSet(d, packed), nil
}

func makeSet(d *weftv1.Set, packed *nftset.Set) *set {
	return &set{decl: d, packed: packed, elements: make(map[string]*weftv1.Element), deadlines: make(map[string]time.Time)}
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
	p := &weftv1.TablePatch{}
	for _, id := range sortedItems(t.items) {
		put(p, t.items[id])
	}
	return &weftv1.Table{
		Family: t.id.Family.String(), Name: t.id.Name, Comment: t.comment,
		Objects: p.GetPutObjects(), Flowtables: p.GetPutFlowtables(), Chains: p.GetPutChains(), Sets: p.GetPutSets(), Maps: p.GetPutMaps(),
	}
}

// put adds an item with all that it holds to a patch.
func put(p *weftv1.TablePatch, it item) {
	switch o := it.(type) {
	case *chain:
		p.PutChains = append(p.PutChains, o.message())
	case *weftv1.Object:
		p.PutObjects = append(p.PutObjects, o)
	case *weftv1.Flowtable:
		p.PutFlowtables = append(p.PutFlowtables, o)
	case *set:
		if o.packed.Map {
			p.PutMaps = append(p.PutMaps, o.message())
		} else {
			p.PutSets = append(p.PutSets, o.message())
		}
	default:
		panic(fmt.Sprintf("knft: item %T", it))
	}
}

// sortedItems returns the items that a map is of, in a fixed order.
func sortedItems[V any](m map[itemID]V) []itemID {
	return slices.SortedFunc(maps.Keys(m), func(a, b itemID) int {
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
		for _, it := range sortedItems(t.items) {
			switch o := t.items[it].(type) {
			case *chain:
				if o.unknown {
					return "rules of table " + id.String() + " chain " + it.name
				}
			case *set:
				if o.unknown {
					return "elements of table " + id.String() + " set " + it.name
				}
			}
		}
	}
	return ""
}
