package render

import (
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/frontends/services/model"
)

type frozen struct {
	on   bool
	kept *weftv1.Table
}

// Part implements publish.Parts. The parts are the tables, named by IP family.
func (r *Renderer) Part(o *weftv1.ObjectName) (name string, ok bool) {
	t := r.tables.named(o.GetFamily(), o.GetTable())
	if t == nil {
		return "", false
	}
	return t.family.String(), true
}

// Freeze implements publish.Parts.
func (r *Renderer) Freeze(part string, committed *weftv1.Fragment) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.tables.part(part)
	t.frozen = frozen{on: true}
	for _, c := range committed.GetTables() {
		if r.tables.named(c.GetFamily(), c.GetName()) == t {
			t.frozen.kept = c
		}
	}
	return len(t.clusterIPs.count) > 0
}

// Uses implements publish.Parts.
func (r *Renderer) Uses(part string, s *model.Service) bool {
	return s.ClusterIPs[r.tables.part(part).family].IsValid()
}

// Thaw implements publish.Parts.
func (r *Renderer) Thaw(part string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tables.part(part).frozen = frozen{}
}

func (ts *tablesByFamily) part(name string) *table { return ts[index(name == model.IPv6.String())] }
