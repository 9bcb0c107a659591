package source

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// store receives the objects of one watch from a reflector of client-go, and passes
// what is new on to all users. It remembers only the version of each object, which
// is enough to see what is new in a list and what is missing from it.
//
// A reflector calls it from one goroutine at a time, so it needs no lock.
type store struct {
	users []follower
	// versions are the resource versions that were delivered last.
	versions map[types.NamespacedName]string
	// ready is closed once it is known what exists.
	ready    chan struct{}
	readySet sync.Once
}

// follower is a user of one watch, and what it follows there.
type follower struct {
	user *user
	kind *kind
}

// item is an object after each user has decoded it.
type item struct {
	name    types.NamespacedName
	version string
	// events has one for each user. It is empty if the version is known.
	events []Event
}

var _ cache.TransformingStore = (*store)(nil)

func newStore() *store {
	return &store{versions: make(map[types.NamespacedName]string), ready: make(chan struct{})}
}

// Transformer implements cache.TransformingStore: a streamed list is decoded while
// it arrives, so the reflector does not hold the objects until its end.
func (s *store) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) { return s.decode(obj) }
}

// Add implements cache.ReflectorStore.
func (s *store) Add(obj any) error { return s.set(obj) }

// Update implements cache.ReflectorStore.
func (s *store) Update(obj any) error { return s.set(obj) }

func (s *store) set(objects ...any) error {
	_, events, err := s.take(objects)
	s.deliver(events)
	return err
}

// Delete implements cache.ReflectorStore. An object that is known to be deleted is
// not reported again.
func (s *store) Delete(obj any) error {
	o, err := s.users[0].kind.accepts(obj)
	if err == nil {
		s.deliver(s.delete(nil, nameOf(o)))
	}
	return err
}

// Replace implements cache.ReflectorStore: these objects are all that exist. What
// is missing was deleted while there was no watch.
func (s *store) Replace(objects []any, _ string) error {
	exist, events, err := s.take(objects)
	if err == nil {
		for name := range s.versions {
			if _, ok := exist[name]; !ok {
				events = s.delete(events, name)
			}
		}
	}
	// The versions before an error are noted, so they have to be delivered.
	s.deliver(events)
	if err == nil {
		s.setReady()
	}
	return err
}

// Resync implements cache.ReflectorStore. It does nothing: users have all objects.
func (s *store) Resync() error { return nil }

// setReady notes that it is known what exists.
func (s *store) setReady() { s.readySet.Do(func() { close(s.ready) }) }

// deleteAll reports all objects as deleted.
func (s *store) deleteAll() {
	var events [][]Event
	for name := range s.versions {
		events = s.delete(events, name)
	}
	s.deliver(events)
}

// delete forgets an object, and appends the events for each user if it was known.
func (s *store) delete(events [][]Event, name types.NamespacedName) [][]Event {
	if _, known := s.versions[name]; !known {
		return events
	}
	delete(s.versions, name)
	deleted := make([]Event, len(s.users))
	for i, f := range s.users {
		deleted[i] = f.kind.deleted(name)
	}
	return append(events, deleted)
}

// take returns the names of objects, and the events for what is new among them.
func (s *store) take(objects []any) (exist map[types.NamespacedName]struct{}, events [][]Event, err error) {
	exist = make(map[types.NamespacedName]struct{}, len(objects))
	for _, obj := range objects {
		// What came in a streamed list has been decoded.
		it, ok := obj.(*item)
		if !ok {
			if it, err = s.decode(obj); err != nil {
				return exist, events, err
			}
		}
		exist[it.name] = struct{}{}
		if it.events != nil {
			s.versions[it.name] = it.version
			events = append(events, it.events)
		}
	}
	return exist, events, nil
}

// decode decodes an object for each user, unless it is known in this version: a list
// after a lost watch repeats what has not changed.
func (s *store) decode(obj any) (*item, error) {
	o, err := s.users[0].kind.accepts(obj)
	if err != nil {
		return nil, err
	}
	it := &item{name: nameOf(o), version: o.GetResourceVersion()}
	if known, ok := s.versions[it.name]; ok && it.version != "" && it.version == known {
		return it, nil
	}
	it.events = make([]Event, len(s.users))
	for i, f := range s.users {
		own := o
		if i < len(s.users)-1 {
			own = o.DeepCopyObject().(Object) //nolint:forcetypeassert // a copy of one
		}
		it.events[i] = f.kind.set(own)
	}
	return it, nil
}

// deliver passes events on, of which each has one part for each user.
func (s *store) deliver(events [][]Event) {
	if len(events) == 0 {
		return
	}
	for i, f := range s.users {
		batch := make([]Event, len(events))
		for j := range events {
			batch[j] = events[j][i]
		}
		f.user.deliver(batch)
	}
}
