package model

import (
	"slices"
)

// merger sorts the endpoints of many slices. Slices are sorted, so merging their runs is several times as
// fast as sorting.
type merger struct {
	// list memory, and a spare of equal size
	room, spare []packedEndpoint
	runs        []int
	// memory for a list's bytes
	packed []byte
}

func (m *merger) start() []packedEndpoint { return m.room[:0] }

func (m *merger) finish(all []packedEndpoint) []packedEndpoint {
	m.room = all
	runs := append(m.runs[:0], 0)
	for i := 1; i < len(all); i++ {
		if all[i-1].compare(&all[i]) > 0 {
			runs = append(runs, i)
		}
	}
	m.runs = runs
	if len(runs) > 1 {
		from, to := all, slices.Grow(m.spare[:0], len(all))[:len(all)]
		for len(runs) > 1 {
			runs = mergePairs(to, from, runs)
			from, to = to, from
		}
		m.room, m.spare, all = from, to, from
	}
	return all
}

// mergePairs merges adjacent runs and returns the starts of the merged runs.
func mergePairs(to, from []packedEndpoint, runs []int) []int {
	bound := func(i int) int {
		if i < len(runs) {
			return runs[i]
		}
		return len(from)
	}
	n := 0
	for i := 0; i < len(runs); i += 2 {
		low, mid, high := runs[i], bound(i+1), bound(i+2)
		mergeRuns(to[low:high], from[low:mid], from[mid:high])
		runs[n] = low
		n++
	}
	return runs[:n]
}

func mergeRuns(to, a, b []packedEndpoint) {
	for len(a) > 0 && len(b) > 0 {
		if a[0].compare(&b[0]) <= 0 {
			to[0], a = a[0], a[1:]
		} else {
			to[0], b = b[0], b[1:]
		}
		to = to[1:]
	}
	copy(to, a)
	copy(to[len(a):], b)
}

// shrink frees memory that few Services need.
func (m *merger) shrink() {
	if cap(m.room) > maxIdleRoom {
		*m = merger{}
	}
	if cap(m.packed) > maxIdleRoom {
		m.packed = nil
	}
}
