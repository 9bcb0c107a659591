package publish

import "slices"

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

// takeSome takes the smallest changes, and at least one, up to a total size; 0 means all. They are
// in order.
func (s *changeSet[K, V]) takeSome(compare func(a, b K) int, most int, size func(*Change[K, V]) int) []Change[K, V] {
	if most == 0 || len(s.items) < 2 {
		return s.take(compare)
	}
	all := s.list(compare)
	slices.SortStableFunc(all, func(a, b Change[K, V]) int { return size(&a) - size(&b) })
	n, total := 0, 0
	for n < len(all) && (n == 0 || total+size(&all[n]) <= most) {
		total += size(&all[n])
		n++
	}
	if n == len(all) {
		return s.take(compare)
	}
	for _, c := range all[:n] {
		delete(s.items, c.Key)
	}
	slices.SortFunc(all[:n], func(a, b Change[K, V]) int { return compare(a.Key, b.Key) })
	return all[:n]
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
