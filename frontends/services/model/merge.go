package model

import (
	"slices"
)

// merger puts the endpoints of many slices in order. Each slice is sorted when
// it comes, so they are runs to merge: for a Service with many slices that is
// several times as fast as sorting them all when one of them changes.
type merger struct {
	// room is where a list is put together, spare is as large.
	room, spare []entry
	runs        []int
	// packed is room for the bytes of a list.
	packed []byte
}

// start returns an empty list. It is valid until the next call.
func (m *merger) start() []entry { return m.room[:0] }

// finish sorts the list that was put together.
func (m *merger) finish(all []entry) []entry {
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

// mergePairs merges each two runs that are side by side and returns where the
// longer runs begin.
func mergePairs(to, from []entry, runs []int) []int {
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

// mergeRuns merges two sorted lists into one that has room for both.
func mergeRuns(to, a, b []entry) {
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

// shrink gives back room that few Services need.
func (m *merger) shrink() {
	if cap(m.room) > keptRoom {
		*m = merger{}
	}
	if cap(m.packed) > keptRoom {
		m.packed = nil
	}
}
