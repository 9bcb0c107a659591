package render

import (
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/frontends/services/model"
)

// frozen is the state of a table that is published as it was committed.
type frozen struct {
	on bool
	// kept is that content; nil for none.
	kept *weftv1.Table
}

// Freeze makes Snapshot repeat kept, the committed table of a family, and leaves the family
// out of patches, while the other family goes on. kept is nil if there is no such table.
// The renderer's state of the table is still updated.
func (r *Renderer) Freeze(f model.Family, kept *weftv1.Table) {
	r.tables[f].frozen = frozen{on: true, kept: kept}
}

// Thaw ends Freeze. The next update must be a snapshot.
func (r *Renderer) Thaw(f model.Family) { r.tables[f].frozen = frozen{} }

// InUse reports whether a Service has an address of a family.
func (r *Renderer) InUse(f model.Family) bool { return len(r.tables[f].clusterIPs.count) > 0 }

// FamilyOf returns the family of the table that the object of a violation is, or is in.
func (r *Renderer) FamilyOf(o *weftv1.ObjectName) (model.Family, bool) {
	for f, t := range r.tables {
		if o.GetFamily() == t.names.table && o.GetTable() == Table {
			return model.Family(f), true
		}
	}
	return 0, false
}
