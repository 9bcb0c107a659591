package render

import (
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/frontends/services/model"
)

// aside is a table that is published as somebody else knows it.
type aside struct {
	on bool
	// kept is the content that stays; nil for none.
	kept *weftv1.Table
}

// SetAside leaves one family's table as it was committed last, in snapshots, and out
// of patches, while the other family goes on. kept is that content, nil if there is
// none. The renderer's own state of the table goes on, too.
func (r *Renderer) SetAside(f model.Family, kept *weftv1.Table) {
	r.tables[f].aside = aside{on: true, kept: kept}
}

// Readmit ends SetAside. The next thing to publish must be a snapshot.
func (r *Renderer) Readmit(f model.Family) { r.tables[f].aside = aside{} }

// InUse reports whether a Service has an address of a family.
func (r *Renderer) InUse(f model.Family) bool { return len(r.tables[f].clusterIPs.uses) > 0 }

// FamilyOf returns the family whose table the object of a violation is, or is in.
func (r *Renderer) FamilyOf(object string) (model.Family, bool) {
	for f, t := range r.tables {
		if head := "table " + t.words.table + " " + Table; object == head || len(object) > len(head) && object[:len(head)+1] == head+" " {
			return model.Family(f), true
		}
	}
	return 0, false
}
