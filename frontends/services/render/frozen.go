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
	t := r.table(o.GetFamily(), o.GetTable())
	if t == nil {
		return "", false
	}
	return t.family.String(), true
}

// Freeze makes Snapshot repeat the committed table of a part and omits the part from patches. It reports
// whether any Service has an address of that family.
func (r *Renderer) Freeze(part string, committed *weftv1.Fragment) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.tableOf(part)
	t.frozen = frozen{on: true}
	for _, c := range committed.GetTables() {
		if r.table(c.GetFamily(), c.GetName()) == t {
			t.frozen.kept = c
		}
	}
	return len(t.clusterIPs.count) > 0
}

// Uses implements publish.Parts.
func (r *Renderer) Uses(part string, s *model.Service) bool {
	return s.ClusterIPs[r.tableOf(part).family].IsValid()
}

// Thaw ends Freeze. The next update must be a snapshot.
func (r *Renderer) Thaw(part string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tableOf(part).frozen = frozen{}
}

func (r *Renderer) tableOf(part string) *table {
	return r.tables[index(part == model.IPv6.String())]
}
