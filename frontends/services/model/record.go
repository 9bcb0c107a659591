package model

import (
	"strings"
	"unique"
)

// record has the objects with a Service's name. The Service need not exist.
type record struct {
	// key does not refer to an API object's string.
	key Key
	// latest Service, and the one in claims, or nil
	parsed    *service
	claimed   *service
	slices    *slice
	endpoints int
	// nil for few endpoints
	merged map[source]string
	// as of the last Refresh
	outcome *Service
}

func (m *Model) recordFor(namespace, name string) *record {
	r := m.records[Key{Namespace: namespace, Name: name}]
	if r == nil {
		r = &record{key: Key{Namespace: unique.Make(namespace).Value(), Name: strings.Clone(name)}}
		m.records[r.key] = r
	}
	return r
}

func (m *Model) forget(r *record) {
	if r.parsed == nil && r.claimed == nil && r.slices == nil {
		delete(m.records, r.key)
	}
}

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
