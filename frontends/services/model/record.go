package model

import (
	"strings"
	"unique"
)

// record is what the model has of one Service, or of one that is to come or is gone.
type record struct {
	// key is in strings of the model's own.
	key Key
	// parsed is the Service as events have it, contested as claims have it; nil where
	// there is none.
	parsed    *service
	contested *service
	// slices is one of the Service's slices; the others come after it.
	slices *slice
	// large is nil unless there are many endpoints.
	large *large
	// outcome is what Refresh computed last, nil if there is none.
	outcome *Service
}

// recordOf returns the record of a Service, a new one if need be.
func (m *Model) recordOf(namespace, name string) *record {
	r := m.records[Key{Namespace: namespace, Name: name}]
	if r == nil {
		r = &record{key: Key{Namespace: unique.Make(namespace).Value(), Name: strings.Clone(name)}}
		m.records[r.key] = r
	}
	return r
}

// forget drops the record of a Service of which nothing is left.
func (m *Model) forget(key Key) {
	if r := m.records[key]; r != nil && *r == (record{key: r.key}) {
		delete(m.records, key)
	}
}

// link puts a slice into the place of its older form, or before the others of its
// Service.
func (r *record) link(was, now *slice) {
	if was == nil {
		now.next = r.slices
	} else {
		now.prev, now.next = was.prev, was.next
	}
	if now.next != nil {
		now.next.prev = now
	}
	if now.prev != nil {
		now.prev.next = now
	} else {
		r.slices = now
	}
}

func (r *record) unlink(s *slice) {
	if s.next != nil {
		s.next.prev = s.prev
	}
	if s.prev != nil {
		s.prev.next = s.next
	} else {
		r.slices = s.next
	}
}
