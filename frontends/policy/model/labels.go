package model

import (
	"hash/maphash"
	"slices"
	"strings"
	"unique"
)

type label struct{ key, value string }

// intern does not retain the memory around s.
func intern(s string) string { return unique.Make(s).Value() }

// parseLabels sorts by key. Values are not interned: many are unique.
func parseLabels(in map[string]string) []label {
	if len(in) == 0 {
		return nil
	}
	out := make([]label, 0, len(in))
	for k, v := range in {
		out = append(out, label{intern(k), v})
	}
	slices.SortFunc(out, func(a, b label) int { return strings.Compare(a.key, b.key) })
	return out
}

// The labels are sorted.
func lookup(labels []label, key string) (value string, ok bool) {
	for i := range labels {
		switch strings.Compare(labels[i].key, key) {
		case 0:
			return labels[i].value, true
		case 1:
			return "", false
		}
	}
	return "", false
}

func writeLabel(h *maphash.Hash, l label) {
	_, _ = h.WriteString(l.key)
	_ = h.WriteByte(0)
	_, _ = h.WriteString(l.value)
	_ = h.WriteByte(0)
}
