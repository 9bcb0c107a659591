package model

import (
	"hash/maphash"
	"slices"
	"strings"
	"unique"
)

// label is one label of an object, or the pair of key and value that a selector requires.
type label struct{ key, value string }

// intern returns a string that all equal strings of the process share, and that does not
// keep the memory around s alive.
func intern(s string) string { return unique.Make(s).Value() }

// parseLabels returns labels sorted by key. It keeps the strings of the values, which decoders
// allocate on their own: many values are those of a single pod, so that to intern them costs
// more than it saves.
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

// lookup returns the value of a key in sorted labels.
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

// writeLabel adds a label to a hash.
func writeLabel(h *maphash.Hash, l label) {
	_, _ = h.WriteString(l.key)
	_ = h.WriteByte(0)
	_, _ = h.WriteString(l.value)
	_ = h.WriteByte(0)
}
