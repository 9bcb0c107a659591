package client

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// diff returns the patch from one fragment to another, or nil if they are equal. It reports false
// if a snapshot is required. Only rules have an order. The patch shares the fragments' objects.
func diff(from, to *weftv1.Fragment) (*weftv1.Patch, bool) {
	// The timeouts of a text's elements begin again.
	if !proto.Equal(Declaration(from), Declaration(to)) || strings.Contains(to.GetNft(), "timeout") {
		return nil, false
	}
	p := &weftv1.Patch{Fragment: to.GetName()}
	put, gone, ok := compare(from.GetTables(), to.GetTables(), tableID, func(before, after *weftv1.Table) bool {
		change, ok := diffTable(before, after)
		if change != nil {
			p.Tables = append(p.Tables, change)
		}
		return ok
	})
	switch {
	case !ok || len(put)+len(gone) > 0:
		return nil, false
	case len(p.GetTables()) == 0:
		return nil, true
	default:
		return p, true
	}
}

func diffTable(from, to *weftv1.Table) (*weftv1.TablePatch, bool) {
	if !proto.Equal(Declaration(from), Declaration(to)) {
		return nil, false
	}
	p := &weftv1.TablePatch{Family: to.GetFamily(), Name: to.GetName()}
	ok := diffObjects(p, from, to) && diffSets(p, from, to)
	if empty := (&weftv1.TablePatch{Family: p.GetFamily(), Name: p.GetName()}); ok && proto.Equal(p, empty) {
		return nil, true
	}
	return p, ok
}

func diffObjects(p *weftv1.TablePatch, from, to *weftv1.Table) bool {
	var objects [][2]string
	var okChains, okObjects, okFlowtables bool
	p.PutChains, p.DeleteChains, okChains = compare(from.GetChains(), to.GetChains(), (*weftv1.Chain).GetName, same)
	p.PutObjects, objects, okObjects = compare(from.GetObjects(), to.GetObjects(), objectID, same)
	p.PutFlowtables, p.DeleteFlowtables, okFlowtables = compare(from.GetFlowtables(), to.GetFlowtables(), (*weftv1.Flowtable).GetName, same)
	for _, id := range objects {
		p.DeleteObjects = append(p.DeleteObjects, &weftv1.ObjectReference{Kind: id[0], Name: id[1]})
	}
	return okChains && okObjects && okFlowtables
}

func diffSets(p *weftv1.TablePatch, from, to *weftv1.Table) bool {
	same := func(before, after *weftv1.Set) bool {
		if !proto.Equal(Declaration(before), Declaration(after)) {
			return false
		}
		change, ok := diffElements(before, after)
		if ok && change != nil {
			p.Elements = append(p.Elements, change)
		}
		return ok
	}
	for i, put := range []*[]*weftv1.Set{&p.PutSets, &p.PutMaps} {
		changed, gone, ok := compare(*setLists(from)[i], *setLists(to)[i], (*weftv1.Set).GetName, same)
		if !ok {
			return false
		}
		*put = changed
		p.DeleteSets = append(p.DeleteSets, gone...)
	}
	// The name of a set that becomes a map is in both.
	names, unique := index(slices.Concat(to.GetSets(), to.GetMaps()), (*weftv1.Set).GetName)
	return unique && !slices.ContainsFunc(p.GetDeleteSets(), func(name string) bool { return names[name] != nil })
}

// diffElements reports false if a key occurs twice, a changed key may be another spelling of a key
// that stays, or packed elements differ.
func diffElements(from, to *weftv1.Set) (*weftv1.ElementPatch, bool) {
	if !slices.EqualFunc(from.GetPacked(), to.GetPacked(), same[*weftv1.PackedElements]) || len(to.GetPacked()) > 0 && to.GetTimeout() != nil {
		return nil, false
	}
	put, gone, ok := compare(from.GetElements(), to.GetElements(), (*weftv1.Element).GetKey, func(a, b *weftv1.Element) bool {
		// a timeout begins again
		return b.GetTimeout() == nil && to.GetTimeout() == nil && sameElement(a, b)
	})
	if len(put)+len(gone) == 0 || !ok {
		return nil, ok
	}
	p := &weftv1.ElementPatch{Set: to.GetName(), Add: put, Remove: gone}
	return p, (len(p.GetRemove()) == 0 || spelledOnce(from.GetElements())) && (len(p.GetAdd()) == 0 || spelledOnce(to.GetElements()))
}

// compare returns new or different objects and removed names. It reports false if a name occurs
// twice.
func compare[T any, K comparable](from, to []T, name func(T) K, same func(a, b T) bool) (put []T, gone []K, ok bool) {
	position, seen := make(map[K]int, len(from)), make([]bool, len(from))
	for i, o := range from {
		position[name(o)] = i
	}
	if len(position) < len(from) {
		return nil, nil, false
	}
	for _, o := range to {
		i, there := position[name(o)]
		switch {
		case !there:
			position[name(o)], seen = len(seen), append(seen, true)
			put = append(put, o)
			continue
		case seen[i]:
			return nil, nil, false
		case !same(from[i], o):
			put = append(put, o)
		}
		seen[i] = true
	}
	for i, o := range from {
		if !seen[i] {
			gone = append(gone, name(o))
		}
	}
	return put, gone, true
}

func same[T proto.Message](a, b T) bool { return proto.Equal(a, b) }

// sameElement avoids reflection: there can be 100,000 elements.
func sameElement(a, b *weftv1.Element) bool {
	return a == b || a.GetKey() == b.GetKey() && a.GetValue() == b.GetValue() && a.GetComment() == b.GetComment() &&
		a.GetTimeout().AsDuration() == b.GetTimeout().AsDuration() && (a.GetState() == nil && b.GetState() == nil || proto.Equal(a.GetState(), b.GetState()))
}

func index[T any, K comparable](list []T, name func(T) K) (map[K]T, bool) {
	m := make(map[K]T, len(list))
	for _, o := range list {
		m[name(o)] = o
	}
	return m, len(m) == len(list)
}

func tableID(t *weftv1.Table) [2]string   { return [2]string{t.GetFamily(), t.GetName()} }
func objectID(o *weftv1.Object) [2]string { return [2]string{o.GetKind(), o.GetName()} }

// spelledOnce reports whether keys with different text certainly differ. The kernel has one element
// for 10.0.0.1, 10.0.0.1/32 and 0xa000001, so a patch that removes one spelling removes the
// element.
func spelledOnce(elements []*weftv1.Element) bool {
	var first, own []byte
	for i, e := range elements {
		own = own[:0]
		for field := range strings.SplitSeq(e.GetKey(), " . ") {
			own = append(own, spelling(field))
		}
		if i == 0 {
			first = slices.Clone(own)
		}
		if slices.Contains(own, otherSpelling) || !slices.Equal(own, first) {
			return false
		}
	}
	return true
}

const (
	otherSpelling byte = iota
	addressSpelling
	numberSpelling
)

func spelling(field string) byte {
	if a, err := netip.ParseAddr(field); err == nil && a.String() == field && a.Zone() == "" {
		return addressSpelling
	}
	if p, err := netip.ParsePrefix(field); err == nil && p.String() == field && p.Masked() == p && !p.IsSingleIP() {
		return addressSpelling
	}
	if n, err := strconv.ParseUint(field, 10, 64); err == nil && strconv.FormatUint(n, 10) == field {
		return numberSpelling
	}
	return otherSpelling
}
