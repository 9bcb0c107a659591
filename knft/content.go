package knft

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/convert"
	"github.com/weft-proxy/weft/nft"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// content is the fragment as published, with the changes of a running transaction.
type content struct {
	tables map[nft.TableID]*table
	// Parts may be unknown.
	partial bool
}

func newContent() *content { return &content{tables: make(map[nft.TableID]*table)} }

type table struct {
	id      nft.TableID
	comment string
	items   map[itemID]item
}

// item is a *chain, a *set, a *weftv1.Object (a counter) or a *weftv1.Flowtable.
type item any

type itemID struct {
	kind kind
	name string
}

// newItemID treats a map as a kind of set, as in nft(8).
func newItemID(k kind, name string) itemID {
	if k == kindMap {
		k = kindSet
	}
	return itemID{k, name}
}

func newTable(id nft.TableID) *table { return &table{id: id, items: make(map[itemID]item)} }

func (t *table) chain(name string) *chain {
	o, _ := t.items[itemID{kindChain, name}].(*chain)
	return o
}

func (t *table) set(name string) *set {
	s, _ := t.items[itemID{kindSet, name}].(*set)
	return s
}

// Rules are immutable and identified by their address.
type chain struct {
	decl  *weftv1.Chain
	rules []*weftv1.Rule
	// The fragment has rules without a known text.
	unknown bool
}

// Elements are immutable.
type set struct {
	decl *weftv1.Set
	// compiled, to compare keys regardless of their spelling
	packed *nftset.Set
	// by packed key
	elements map[string]*weftv1.Element
	// when elements with a timeout are gone from the kernel
	deadlines map[string]deadline
	// The fragment may have further elements.
	unknown bool
	// decl comes from the kernel, which may not know the original text.
	adopted bool
}

func newSet(family nft.Family, d *weftv1.Set, isMap bool) (*set, error) {
	packed, err := convert.CompileSet(family, d, isMap)
	if err != nil {
		return nil, err
	}
	return makeSet(d, packed), nil
}

func makeSet(d *weftv1.Set, packed *nftset.Set) *set {
	return &set{decl: d, packed: packed, elements: make(map[string]*weftv1.Element), deadlines: make(map[string]deadline)}
}

func (s *set) id(key string) (string, error) {
	e, err := s.packed.PackKey(key)
	if err != nil {
		return "", err
	}
	return e.Key + e.KeyEnd, nil
}

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

func (s *set) message() *weftv1.Set {
	m := proto.CloneOf(s.decl)
	m.Elements = make([]*weftv1.Element, 0, len(s.elements))
	for _, id := range slices.Sorted(maps.Keys(s.elements)) {
		m.Elements = append(m.Elements, s.elements[id])
	}
	return m
}

func (c *chain) message() *weftv1.Chain {
	m := proto.CloneOf(c.decl)
	m.Rules = slices.Clone(c.rules)
	return m
}

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

func sortedItems[V any](m map[itemID]V) []itemID {
	return slices.SortedFunc(maps.Keys(m), func(a, b itemID) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name))
	})
}

// fragment returns the content as a snapshot, nil if empty. The caller holds mu.
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

func sortedIDs[V any](m map[nft.TableID]V) []nft.TableID {
	return slices.SortedFunc(maps.Keys(m), func(a, b nft.TableID) int {
		return cmp.Or(cmp.Compare(a.Family, b.Family), cmp.Compare(a.Name, b.Name))
	})
}

// unknown returns the first unknown part, such as "rules of table ip t chain c", or "".
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
