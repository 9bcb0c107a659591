package render

import (
	"maps"
	"slices"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

type patch struct {
	family   string
	chains   []*weftv1.Chain
	sets     []*weftv1.Set
	maps     []*weftv1.Set
	counters []*weftv1.Object
	elements map[string]*weftv1.ElementPatch
}

func (p *patch) declare(o *object) {
	switch c := o.content.(type) {
	case *weftv1.Chain:
		p.chains = append(p.chains, c)
	case *weftv1.Object:
		p.counters = append(p.counters, c)
	case *weftv1.Set:
		if o.verdicts {
			p.maps = append(p.maps, c)
		} else {
			p.sets = append(p.sets, c)
		}
	default:
		p.sets = append(p.sets, o.members.message())
	}
}

func (p *patch) of(set string) *weftv1.ElementPatch {
	e := p.elements[set]
	if e == nil {
		if p.elements == nil {
			p.elements = make(map[string]*weftv1.ElementPatch)
		}
		e = &weftv1.ElementPatch{Set: set}
		p.elements[set] = e
	}
	return e
}

func (p *patch) add(set string, e *weftv1.Element) {
	of := p.of(set)
	of.Add = append(of.Add, e)
}

func (p *patch) remove(set, key string) {
	of := p.of(set)
	of.Remove = append(of.Remove, key)
}

func (p *patch) message() *weftv1.TablePatch {
	if len(p.chains)+len(p.sets)+len(p.maps)+len(p.counters)+len(p.elements) == 0 {
		return nil
	}
	out := &weftv1.TablePatch{Family: p.family, Name: Table, PutChains: p.chains, PutSets: p.sets, PutMaps: p.maps, PutObjects: p.counters}
	for _, name := range slices.Sorted(maps.Keys(p.elements)) {
		out.Elements = append(out.Elements, p.elements[name])
	}
	return out
}
