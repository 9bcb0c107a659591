package set

import (
	"cmp"
	"slices"
)

// Overlapping boxes are found by the method of Zomorodian and Edelsbrunner ("Fast software for box
// intersections", 2000), in O(n log^d n) time.
type boxes struct {
	elements []Element
	// first and last are bounds by dimension, as ranks in the dimension.
	first, last [][]int32
}

// fewElements are compared in pairs.
const fewElements = 16

// newBoxes leaves out fields in which all elements overlap. The fields are those of Type.
func newBoxes(fields []uint32, elements []Element) *boxes {
	b := &boxes{elements: elements}
	bounds := make([]string, 0, 2*len(elements))
	at := 0
	for _, n := range fields {
		end := at + int(n)
		least, greatest := elements[0].KeyEnd[at:end], elements[0].Key[at:end]
		bounds = bounds[:0]
		for _, e := range elements {
			bounds = append(bounds, e.Key[at:end], e.KeyEnd[at:end])
			least, greatest = min(least, e.KeyEnd[at:end]), max(greatest, e.Key[at:end])
		}
		if greatest > least {
			slices.Sort(bounds)
			first, last := make([]int32, len(elements)), make([]int32, len(elements))
			ranks := slices.Compact(bounds)
			for i, e := range elements {
				first[i], last[i] = rank(ranks, e.Key[at:end]), rank(ranks, e.KeyEnd[at:end])
			}
			b.first, b.last = append(b.first, first), append(b.last, last)
		}
		at += int(n+3) &^ 3
	}
	return b
}

func rank(bounds []string, bound string) int32 {
	i, _ := slices.BinarySearch(bounds, bound)
	return int32(i) //nolint:gosec // a set has less than 2^31 elements
}

func (b *boxes) overlap() (*Element, *Element) {
	all := make([]int32, len(b.elements))
	for i := range all {
		all[i] = int32(i) //nolint:gosec // a set has less than 2^31 elements
	}
	if i, j, ok := b.between(all, all, len(b.first)); ok {
		return &b.elements[min(i, j)], &b.elements[max(i, j)]
	}
	return nil, nil
}

// between returns two different boxes, one of each list, that overlap in the first d dimensions. In
// the last of these, the first box contains the start of the second. All boxes overlap in the
// dimensions from d.
func (b *boxes) between(intervals, starts []int32, d int) (i, j int32, ok bool) {
	switch {
	case len(intervals) == 0 || len(starts) == 0:
		return 0, 0, false
	case d == 0:
		for _, i := range intervals[:min(2, len(intervals))] {
			for _, j := range starts[:min(2, len(starts))] {
				if i != j {
					return i, j, true
				}
			}
		}
		return 0, 0, false
	case len(intervals) <= fewElements || len(starts) <= fewElements:
		return b.inPairs(intervals, starts, d)
	}
	first := b.first[d-1]
	starts = slices.Clone(starts)
	slices.SortFunc(starts, func(i, j int32) int { return cmp.Compare(first[i], first[j]) })
	return b.descend(intervals, starts, d)
}

// descend is between for ordered starts. Intervals with all starts go to the next dimension; the
// starts are divided for the others.
func (b *boxes) descend(intervals, starts []int32, d int) (i, j int32, ok bool) {
	if len(intervals) <= fewElements || len(starts) <= fewElements {
		return b.inPairs(intervals, starts, d)
	}
	first, last := b.first[d-1], b.last[d-1]
	least, greatest := first[starts[0]], first[starts[len(starts)-1]]
	var whole, part []int32
	for _, i := range intervals {
		switch {
		case first[i] <= least && last[i] >= greatest:
			whole = append(whole, i)
		case first[i] <= greatest && last[i] >= least:
			part = append(part, i)
		}
	}
	if i, j, ok = b.between(whole, starts, d-1); ok {
		return i, j, true
	}
	if i, j, ok = b.between(starts, whole, d-1); ok || least == greatest {
		return i, j, ok
	}
	at := max(first[starts[len(starts)/2]], least+1)
	half, _ := slices.BinarySearchFunc(starts, at, func(i, at int32) int { return cmp.Compare(first[i], at) })
	below, above := part[:0:0], part[:0:0]
	for _, i := range part {
		if first[i] < at {
			below = append(below, i)
		}
		if last[i] >= at {
			above = append(above, i)
		}
	}
	if i, j, ok = b.descend(below, starts[:half], d); ok {
		return i, j, true
	}
	return b.descend(above, starts[half:], d)
}

func (b *boxes) inPairs(some, others []int32, d int) (i, j int32, ok bool) {
	for _, i := range some {
		for _, j := range others {
			if i != j && b.meet(i, j, d) {
				return i, j, true
			}
		}
	}
	return 0, 0, false
}

func (b *boxes) meet(i, j int32, d int) bool {
	for k := range d {
		if b.first[k][i] > b.last[k][j] || b.first[k][j] > b.last[k][i] {
			return false
		}
	}
	return true
}
