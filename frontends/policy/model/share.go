package model

import (
	"hash/maphash"
	"slices"
)

// Most pods have the labels and ports of a replica.
type sharedLists[T comparable] struct {
	write  func(*maphash.Hash, T)
	hash   maphash.Hash
	byHash map[uint64]*sharedList[T] // the first list with each hash
}

type sharedList[T comparable] struct {
	values []T
	hash   uint64
	uses   int
	next   *sharedList[T] // with the same hash
}

func newSharedLists[T comparable](write func(*maphash.Hash, T)) sharedLists[T] {
	return sharedLists[T]{write: write, byHash: make(map[uint64]*sharedList[T])}
}

func (s *sharedLists[T]) use(values []T) *sharedList[T] {
	s.hash.Reset()
	for _, v := range values {
		s.write(&s.hash, v)
	}
	h := s.hash.Sum64()
	first := s.byHash[h]
	for l := first; l != nil; l = l.next {
		if slices.Equal(l.values, values) {
			l.uses++
			return l
		}
	}
	l := &sharedList[T]{values: values, hash: h, uses: 1, next: first}
	s.byHash[h] = l
	return l
}

func (s *sharedLists[T]) release(l *sharedList[T]) {
	if l.uses--; l.uses > 0 {
		return
	}
	first := s.byHash[l.hash]
	switch {
	case first == l && l.next == nil:
		delete(s.byHash, l.hash)
	case first == l:
		s.byHash[l.hash] = l.next
	default:
		for before := first; before != nil; before = before.next {
			if before.next == l {
				before.next = l.next
				break
			}
		}
	}
}
