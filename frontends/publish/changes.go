package publish

import (
	"cmp"
	"maps"
	"slices"
)

// keepRoom is the number of changes for which a set keeps its memory.
const keepRoom = 256

// changeSet joins the changes of items: of an item the first Old and the last New stay.
// The zero value is empty.
type changeSet[K comparable, V any] struct {
	items map[K]Change[K, V]
}

func (s *changeSet[K, V]) add(changes []Change[K, V]) {
	if s.items == nil {
		s.items = make(map[K]Change[K, V], len(changes))
	}
	for _, c := range changes {
		if first, ok := s.items[c.Key]; ok {
			c.Old = first.Old
		}
		s.items[c.Key] = c
	}
}

// list returns the changes in order.
func (s *changeSet[K, V]) list(compare func(a, b K) int) []Change[K, V] {
	out := make([]Change[K, V], 0, len(s.items))
	for _, c := range s.items {
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b Change[K, V]) int { return compare(a.Key, b.Key) })
	return out
}

// takeSome takes the smallest groups of changes, and at least one, up to a total size; 0 means
// all. They are in order. Without a Divisible, each change is a group.
func (s *changeSet[K, V]) takeSome(compare func(a, b K) int, most int, size func(*Change[K, V]) int, d Divisible[V]) []Change[K, V] {
	if most == 0 || len(s.items) < 2 {
		return s.take(compare)
	}
	left := most
	for _, c := range s.items {
		left -= size(&c)
	}
	if left >= 0 {
		return s.take(compare)
	}
	all := s.list(compare)
	groups, sizes := join(all, d), make(map[int]int)
	for i := range all {
		sizes[groups[i]] += size(&all[i])
	}
	left = most
	for n, g := range slices.SortedFunc(maps.Keys(sizes), func(a, b int) int { return cmp.Or(sizes[a]-sizes[b], a-b) }) {
		if left -= sizes[g]; n > 0 && left < 0 {
			delete(sizes, g)
		}
	}
	s.items = make(map[K]Change[K, V])
	taken := all[:0]
	for i, c := range all {
		if _, ok := sizes[groups[i]]; ok {
			taken = append(taken, c)
		} else {
			s.items[c.Key] = c
		}
	}
	return taken
}

// join numbers the groups of changes: those with a common move are in one.
func join[K comparable, V any](all []Change[K, V], d Divisible[V]) []int {
	groups, last := make([]int, len(all)), make(map[uint64]int)
	for i := range all {
		groups[i] = i
		if d == nil {
			continue
		}
		for move := range d.Moves(all[i].Old, all[i].New) {
			if j, ok := last[move]; ok && groups[j] != groups[i] {
				from := groups[j]
				for n := range i {
					if groups[n] == from {
						groups[n] = groups[i]
					}
				}
			}
			last[move] = i
		}
	}
	return groups
}

// take returns the changes in order, and empties the set.
func (s *changeSet[K, V]) take(compare func(a, b K) int) []Change[K, V] {
	out := s.list(compare)
	// To clear a map, or to range over it, costs as much as it once held.
	if len(out) > keepRoom {
		s.items = nil
	} else {
		clear(s.items)
	}
	return out
}
