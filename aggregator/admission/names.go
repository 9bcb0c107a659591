package admission

import (
	"cmp"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/set"
)

// ObjectName names an object of a table.
func ObjectName(table nft.TableID, kind, name string) *weftv1.ObjectName {
	return &weftv1.ObjectName{Kind: kind, Family: table.Family.String(), Table: table.Name, Name: name}
}

func tableName(table nft.TableID) *weftv1.ObjectName { return ObjectName(table, "table", "") }

// ruleName counts index from 0 in the fragment's rules of a chain, and the message from 1.
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

// PlaceName names a place; nil for an empty place.
func PlaceName(p desired.Place) *weftv1.ObjectName {
	switch {
	case p == (desired.Place{}):
		return nil
	case p.Key != "":
		return ElementName(p.Table, p.Name, p.Key)
	case p.Rule > 0:
		return ruleName(p.Table, p.Name, p.Rule-1)
	default:
		return ObjectName(p.Table, cmp.Or(p.Kind, "table"), p.Name)
	}
}

// OpName names the object of an op. It returns nil for an unknown op: the daemon must not panic.
func OpName(op kernel.Op) *weftv1.ObjectName {
	switch o := op.(type) {
	case nil:
		return nil
	case kernel.AddTable, kernel.DeleteTable:
		return tableName(kernel.TableOf(op))
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
		return nil
	}
}

func setName(table nft.TableID, s *set.Set) *weftv1.ObjectName {
	return ObjectName(table, SetKind(s.Map), s.Name)
}

func elementsName(table nft.TableID, s *set.Set, elements []set.Element) *weftv1.ObjectName {
	if len(elements) != 1 {
		return setName(table, s)
	}
	return ElementName(table, s.Name, s.FormatKey(elements[0]))
}
