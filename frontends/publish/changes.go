package publish

import "slices"

// keepRoom is the largest set with reused memory.
const keepRoom = 256

// changeSet joins changes per item: the first Old and the last New.
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

func (s *changeSet[K, V]) list(compare func(a, b K) int) []Change[K, V] {
	out := make([]Change[K, V], 0, len(s.items))
	for _, c := range s.items {
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b Change[K, V]) int { return compare(a.Key, b.Key) })
	return out
}

// takeSome takes at least one change. divide receives changes in order.
func (s *changeSet[K, V]) takeSome(compare func(a, b K) int, divide func([]Change[K, V]) (now, later []Change[K, V])) []Change[K, V] {
	now, later := divide(s.take(compare))
	s.add(later)
	slices.SortFunc(now, func(a, b Change[K, V]) int { return compare(a.Key, b.Key) })
	return now
}

// smallest takes the smallest changes up to the total size most, but at least one.
func smallest[K comparable, V any](all []Change[K, V], most int, size func(*Change[K, V]) int) (now, later []Change[K, V]) {
	slices.SortStableFunc(all, func(a, b Change[K, V]) int { return size(&a) - size(&b) })
	n := 0
	for ; n < len(all); n++ {
		if most -= size(&all[n]); n > 0 && most < 0 {
			break
		}
	}
	return all[:n], all[n:]
}

func (s *changeSet[K, V]) take(compare func(a, b K) int) []Change[K, V] {
	out := s.list(compare)
	// Clearing or ranging over a map costs its past maximum size.
	if len(out) > keepRoom {
		s.items = nil
	} else {
		clear(s.items)
	}
	return out
}
