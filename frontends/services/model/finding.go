package model

import (
	"log/slog"
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

// reporter logs and counts the invalid parts of objects.
type reporter struct {
	log     *slog.Logger
	skipped uint64
}

func (r *reporter) findings(kind string, name Key, before, now findings) {
	for _, f := range now {
		if slices.Contains(before, f) {
			continue
		}
		r.skipped++
		r.log.Warn("object has an invalid field: ignoring it", "kind", kind, "namespace", name.Namespace, "name", name.Name, "field", f.field, "error", f.why)
	}
}
