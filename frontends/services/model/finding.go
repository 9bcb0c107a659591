package model

import (
	"slices"
)

// finding is a part of an object that is left out because it makes no sense.
type finding struct {
	field string
	why   string
}

// findings are those of one object. They are kept with it, so that an object
// that comes again with the same faults is not reported again.
type findings []finding

func (f *findings) add(field string, why error) {
	*f = append(*f, finding{field: field, why: why.Error()})
}

// tell counts and logs the findings of an object that it did not have before.
func (m *Model) tell(kind string, name Key, before, now findings) {
	for _, f := range now {
		if slices.Contains(before, f) {
			continue
		}
		m.stats.Skipped++
		m.log.Warn("object has a bad field: left out", "kind", kind, "namespace", name.Namespace, "name", name.Name, "field", f.field, "error", f.why)
	}
}
