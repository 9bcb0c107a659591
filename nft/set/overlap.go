package set

import (
	"cmp"
	"slices"
)

const (
	// fewElements are compared in pairs.
	fewElements = 16
	// maxDivisions limits the divisions of a group: elements that differ in one field are divided
	// once for each field.
	maxDivisions = 16
)

// findOverlap returns two overlapping elements of a concatenation with intervals, and changes their
// order. It divides the elements at gaps between a field's intervals, then each group by the next
// field. Groups that interlock like bricks are searched as boxes. undivided counts the fields that
// did not divide the group, and depth the calls.
func (s *Set) findOverlap(elements []*Element, field, undivided, depth int) (a, b *Element) {
	at := 0
	for _, n := range s.Key.Fields[:field] {
		at += int(n+3) &^ 3
	}
	end := at + int(s.Key.Fields[field])
	slices.SortStableFunc(elements, func(a, b *Element) int { return cmp.Compare(a.Key[at:end], b.Key[at:end]) })
	if len(elements) > fewElements && (undivided == len(s.Key.Fields) || depth == maxDivisions) {
		return s.newBoxes(elements).overlap()
	}
	if len(elements) <= fewElements {
		for i, a := range elements {
			for _, b := range elements[i+1:] {
				if b.Key[at:end] > a.KeyEnd[at:end] {
					break
				}
				if s.Overlap(*a, *b) {
					return a, b
				}
			}
		}
		return nil, nil
	}
	for rest := elements; len(rest) > 0; {
		n, last := 1, rest[0].KeyEnd[at:end]
		for n < len(rest) && rest[n].Key[at:end] <= last {
			last = max(last, rest[n].KeyEnd[at:end])
			n++
		}
		next := undivided + 1
		if n < len(elements) {
			next = 0
		}
		if a, b = s.findOverlap(rest[:n], (field+1)%len(s.Key.Fields), next, depth+1); a != nil {
			return a, b
		}
		rest = rest[n:]
	}
	return nil, nil
}
