package model

import (
	"slices"
)

type finding struct {
	field string
	why   string
}

type findings []finding

func (f *findings) add(field string, why error) {
	*f = append(*f, finding{field: field, why: why.Error()})
}

func (m *Model) reportFindings(kind string, name Key, before, now findings) {
	for _, f := range now {
		if slices.Contains(before, f) {
			continue
		}
		m.stats.Skipped++
		m.cfg.Logger.Warn("object has an invalid field: ignoring it", "kind", kind, "namespace", name.Namespace, "name", name.Name, "field", f.field, "error", f.why)
	}
}
