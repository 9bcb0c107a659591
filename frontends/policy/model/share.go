package model

import (
	"hash/maphash"
	"slices"
)

// sharedLists stores equal lists once: most pods have the labels and ports of a replica.
type sharedLists[T comparable] struct {
	write  func(*maphash.Hash, T)
	hash   maphash.Hash
	byHash map[uint64][]*sharedList[T]
}

type sharedList[T comparable] struct {
	values []T
	hash   uint64
	uses   int
}

func newSharedLists[T comparable](write func(*maphash.Hash, T)) sharedLists[T] {
	return sharedLists[T]{write: write, byHash: make(map[uint64][]*sharedList[T])}
}

func (s *sharedLists[T]) use(values []T) *sharedList[T] {
	s.hash.Reset()
	for _, v := range values {
		s.write(&s.hash, v)
	}
	h := s.hash.Sum64()
	for _, l := range s.byHash[h] {
		if slices.Equal(l.values, values) {
			l.uses++
			return l
		}
	}
	l := &sharedList[T]{values: values, hash: h, uses: 1}
	s.byHash[h] = append(s.byHash[h], l)
	return l
}

func (s *sharedLists[T]) release(l *sharedList[T]) {
	if l.uses--; l.uses > 0 {
		return
	}
	rest := slices.DeleteFunc(s.byHash[l.hash], func(o *sharedList[T]) bool { return o == l })
	if s.byHash[l.hash] = rest; len(rest) == 0 {
		delete(s.byHash, l.hash)
	}
}
