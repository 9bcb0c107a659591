package convert

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/set"
)

// Text returns a function for the requests of one stream, in their order, that replaces packed elements by
// text. It does not change its argument.
//
// Possible errors: package set's, and one for a set that no earlier request declares.
func Text() func(*weftv1.PublishRequest) (*weftv1.PublishRequest, error) {
	t := text{}
	return func(req *weftv1.PublishRequest) (*weftv1.PublishRequest, error) {
		req = proto.CloneOf(req)
		for _, of := range req.GetSnapshot().GetTables() {
			if err := t.sets(of.GetFamily(), of.GetName(), of.GetSets(), of.GetMaps()); err != nil {
				return nil, err
			}
		}
		for _, of := range req.GetPatch().GetTables() {
			if err := t.sets(of.GetFamily(), of.GetName(), of.GetPutSets(), of.GetPutMaps()); err != nil {
				return nil, err
			}
			for _, e := range of.GetElements() {
				if err := t.elements(textKey{of.GetFamily(), of.GetName(), e.GetSet()}, e); err != nil {
					return nil, err
				}
			}
		}
		return req, nil
	}
}

type text map[textKey]*set.Set

type textKey struct{ family, table, set string }

func (t text) sets(family, table string, lists ...[]*weftv1.Set) error {
	f, err := nft.ParseFamily(family)
	for i, list := range lists {
		for _, m := range list {
			key := textKey{family, table, m.GetName()}
			if err == nil && (m.GetType() != "" || m.GetTypeof() != "") {
				t[key], err = CompileSet(f, m, i == 1)
			}
			if err == nil && len(m.GetPacked()) > 0 {
				m.Elements, err = t.unpack(key, m.GetElements(), m.GetPacked(), true)
				m.Packed = nil
			}
		}
	}
	return err
}

func (t text) elements(key textKey, e *weftv1.ElementPatch) error {
	removed, err := t.unpack(key, nil, e.GetRemovePacked(), false)
	if err != nil {
		return err
	}
	for _, r := range removed {
		e.Remove = append(e.Remove, r.GetKey())
	}
	e.Add, err = t.unpack(key, e.GetAdd(), e.GetAddPacked(), true)
	e.RemovePacked, e.AddPacked = nil, nil
	return err
}

func (t text) unpack(key textKey, to []*weftv1.Element, packed []*weftv1.PackedElements, data bool) ([]*weftv1.Element, error) {
	if len(packed) == 0 {
		return to, nil
	}
	d := t[key]
	if d == nil {
		return nil, fmt.Errorf("packed elements of set %s of table %s %s: it is not declared", key.set, key.family, key.table)
	}
	all, err := Unpack(d, packed, data)
	return slices.Concat(to, all), err
}
