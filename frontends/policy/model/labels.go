package model

import (
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"unique"
)

// label is one label of an object, or the pair of key and value that a selector requires.
type label struct{ key, value string }

// intern returns a string that all equal strings of the process share, and that does not
// keep the memory around s alive.
func intern(s string) string { return unique.Make(s).Value() }

// parseLabels returns labels sorted by key.
func parseLabels(in map[string]string) []label {
	if len(in) == 0 {
		return nil
	}
	out := make([]label, 0, len(in))
	for _, k := range slices.Sorted(maps.Keys(in)) {
		out = append(out, label{intern(k), intern(in[k])})
	}
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

// labelSets has each distinct set of labels once: most pods have those of a replica.
type labelSets struct {
	seed maphash.Seed
	sets map[uint64][]*labelSet
}

// labelSet is a sorted set of labels that several pods share.
type labelSet struct {
	labels []label
	hash   uint64
	uses   int
}

func newLabelSets() labelSets {
	return labelSets{seed: maphash.MakeSeed(), sets: make(map[uint64][]*labelSet)}
}

// use returns the shared set that is equal to labels.
func (s *labelSets) use(labels []label) *labelSet {
	var h uint64
	for i := range labels {
		h = h*31 + maphash.String(s.seed, labels[i].key)
		h = h*31 + maphash.String(s.seed, labels[i].value)
	}
	for _, known := range s.sets[h] {
		if slices.Equal(known.labels, labels) {
			known.uses++
			return known
		}
	}
	l := &labelSet{labels: labels, hash: h, uses: 1}
	s.sets[h] = append(s.sets[h], l)
	return l
}

// release ends a use.
func (s *labelSets) release(l *labelSet) {
	if l.uses--; l.uses > 0 {
		return
	}
	rest := slices.DeleteFunc(s.sets[l.hash], func(o *labelSet) bool { return o == l })
	if len(rest) == 0 {
		delete(s.sets, l.hash)
		return
	}
	s.sets[l.hash] = rest
}
