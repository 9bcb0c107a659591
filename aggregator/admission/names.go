package admission

import (
	"strconv"
	"strings"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/set"
)

// ObjectName names an object of a table.
func ObjectName(table nft.TableID, kind, name string) *weftv1.ObjectName {
	return &weftv1.ObjectName{Kind: kind, Family: table.Family.String(), Table: table.Name, Name: name}
}

// tableName names a table.
func tableName(table nft.TableID) *weftv1.ObjectName { return ObjectName(table, "table", "") }

// ruleName names the rule at an index, from 0, of the rules that a fragment has in
// a chain.
func ruleName(table nft.TableID, chain string, index int) *weftv1.ObjectName {
	n := ObjectName(table, "rule", chain)
	n.Index = uint32(index + 1) //nolint:gosec // at most MaxRules
	return n
}

// ElementName names an element of a set or map.
func ElementName(table nft.TableID, set, key string) *weftv1.ObjectName {
	n := ObjectName(table, "element", set)
	n.Key = key
	return n
}

// PlaceName names the object that package desired calls by its table and a place
// in it, such as "chain input" or "ct helper ftp rule 3".
func PlaceName(object string) *weftv1.ObjectName {
	words := strings.Fields(object)
	if len(words) < 3 || words[0] != "table" {
		return nil
	}
	n := &weftv1.ObjectName{Kind: "table", Family: words[1], Table: words[2]}
	place := strings.Join(words[3:], " ")
	if place == "" {
		return n
	}
	if head, key, ok := strings.Cut(place, " element "); ok {
		_, name, _ := strings.Cut(head, " ")
		n.Kind, n.Name, n.Key = "element", name, key
		return n
	}
	if head, index, ok := strings.Cut(place, " rule "); ok {
		_, n.Name, _ = strings.Cut(head, " ")
		i, _ := strconv.ParseUint(index, 10, 32)
		n.Kind, n.Index = "rule", uint32(i)
		return n
	}
	last := strings.LastIndexByte(place, ' ')
	n.Kind, n.Name = place[:max(last, 0)], place[last+1:]
	return n
}

// OpName names the object of an op; nil for no op.
func OpName(op kernel.Op) *weftv1.ObjectName {
	switch o := op.(type) {
	case nil:
		return nil
	case kernel.AddTable:
		return tableName(o.Table)
	case kernel.DeleteTable:
		return tableName(o.Table)
	case kernel.AddObject:
		return ObjectName(o.Table, string(o.Object.Kind), o.Object.Name)
	case kernel.DeleteObject:
		return ObjectName(o.Table, string(o.Ref.Kind), o.Ref.Name)
	case kernel.AddFlowtable:
		return ObjectName(o.Table, string(kindFlowtable), o.Flowtable.Name)
	case kernel.DeleteFlowtable:
		return ObjectName(o.Table, string(kindFlowtable), o.Name)
	case kernel.AddChain:
		return ObjectName(o.Table, "chain", o.Chain.Name)
	case kernel.DeleteChain:
		return ObjectName(o.Table, "chain", o.Name)
	case kernel.AddRule:
		return ObjectName(o.Table, "rule", o.Chain)
	case kernel.DeleteRule:
		n := ObjectName(o.Table, "rule", o.Chain)
		n.Handle = o.Handle.N
		return n
	case kernel.AddSet:
		return setName(o.Table, o.Set)
	case kernel.DeleteSet:
		return ObjectName(o.Table, "set", o.Name)
	case kernel.FlushSet:
		return ObjectName(o.Table, "set", o.Name)
	case kernel.AddElements:
		return elementsName(o.Table, o.Set, o.Elements)
	case kernel.DeleteElements:
		return elementsName(o.Table, o.Set, o.Elements)
	default:
		panic("no name for the object of a " + kernel.Describe(op))
	}
}

func setName(table nft.TableID, s *set.Set) *weftv1.ObjectName {
	return ObjectName(table, SetKind(s.Map), s.Name)
}

// elementsName names an element, or the set of several.
func elementsName(table nft.TableID, s *set.Set, elements []set.Element) *weftv1.ObjectName {
	if len(elements) != 1 {
		return setName(table, s)
	}
	return ElementName(table, s.Name, s.FormatKey(elements[0]))
}
