package model

import (
	"strings"
	"unique"
)

// record has what the model knows of one Service, which may not exist yet or any more.
type record struct {
	// key does not refer to a string of an API object.
	key Key
	// parsed is the Service of the last event, claimed the one that is in claims; nil if
	// there is none.
	parsed  *service
	claimed *service
	// slices is the head of the list of the Service's slices.
	slices *slice
	// incremental is nil unless there are many endpoints.
	incremental *incremental
	// outcome is the result of the last Refresh, nil if there is none.
	outcome *Service
}

// recordFor returns the record of a Service, and makes one if there is none.
func (m *Model) recordFor(namespace, name string) *record {
	r := m.records[Key{Namespace: namespace, Name: name}]
	if r == nil {
		r = &record{key: Key{Namespace: unique.Make(namespace).Value(), Name: strings.Clone(name)}}
		m.records[r.key] = r
	}
	return r
}

// forget removes an empty record.
func (m *Model) forget(key Key) {
	if r := m.records[key]; r != nil && *r == (record{key: r.key}) {
		delete(m.records, key)
	}
}

// link puts a slice in place of its older form, or at the head of the list.
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
