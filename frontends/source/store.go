package source

import (
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// store receives the objects of one watch from a reflector of client-go, and passes
// what is new on to all users. It remembers only the version of each object, which
// is enough to see what is new in a list and what is missing from it.
//
// A reflector calls it from one goroutine at a time, so it needs no lock.
//
// Before it is known what exists, no user acts on what it has, so the objects of a streamed list
// are delivered while the list still arrives. A later list is delivered at once, at its end:
// users never act on half of it.
type store struct {
	users []follower
	// versions are the resource versions that were delivered last.
	versions map[types.NamespacedName]string
	// ready is closed once it is known what exists.
	ready    chan struct{}
	readySet sync.Once
	// resolved is closed once the API server has listed the objects, or has answered that it does not
	// have the resource.
	resolved    chan struct{}
	resolvedSet sync.Once
	// arrived are the items of a first list that wait to be delivered, and delivery is done
	// when the items before them are. At most one delivery is under way.
	arrived  []*item
	delivery sync.WaitGroup
}

// maxArrived is how many items of a first list are delivered together.
const maxArrived = 256

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
	return &store{versions: make(map[types.NamespacedName]string), ready: make(chan struct{}), resolved: make(chan struct{})}
}

// Transformer implements cache.TransformingStore: a streamed list is decoded while
// it arrives, so the reflector does not hold the objects until its end.
func (s *store) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		it, err := s.decode(obj)
		if err != nil || it.events == nil || s.isReady() {
			return it, err
		}
		s.versions[it.name] = it.version
		s.arrived = append(s.arrived, it)
		if len(s.arrived) == maxArrived {
			s.deliverArrived()
		}
		return &item{name: it.name, version: it.version}, nil
	}
}

// deliverArrived begins to deliver the items that arrived.
func (s *store) deliverArrived() {
	s.delivery.Wait()
	items := s.arrived
	s.arrived = nil
	s.delivery.Go(func() { s.deliver(items) })
}

// finishArrived delivers all items that arrived.
func (s *store) finishArrived() {
	if len(s.arrived) > 0 {
		s.deliverArrived()
	}
	s.delivery.Wait()
}

// Add implements cache.ReflectorStore.
func (s *store) Add(obj any) error { return s.set(obj) }

// Update implements cache.ReflectorStore.
func (s *store) Update(obj any) error { return s.set(obj) }

func (s *store) set(objects ...any) error {
	s.finishArrived()
	items, err := s.take(objects, func(types.NamespacedName) {})
	s.deliver(items)
	return err
}

// Delete implements cache.ReflectorStore. An object that is known to be deleted is
// not reported again.
func (s *store) Delete(obj any) error {
	s.finishArrived()
	o, err := s.users[0].kind.accepts(obj)
	if err == nil {
		s.deliver(s.delete(nil, nameOf(o)))
	}
	return err
}

// Replace implements cache.ReflectorStore: these objects are all that exist. What
// is missing was deleted while there was no watch.
func (s *store) Replace(objects []any, _ string) error {
	s.finishArrived()
	missing := maps.Clone(s.versions)
	if len(missing) == 0 {
		s.versions = make(map[types.NamespacedName]string, len(objects))
	}
	items, err := s.take(objects, func(name types.NamespacedName) { delete(missing, name) })
	if err == nil {
		for name := range missing {
			items = s.delete(items, name)
		}
	}
	// The versions before an error are noted, so they have to be delivered.
	s.deliver(items)
	if err == nil {
		s.resolve()
		s.setReady()
	}
	return err
}

// resolve notes that the API server has said what exists.
func (s *store) resolve() { s.resolvedSet.Do(func() { close(s.resolved) }) }

// Resync implements cache.ReflectorStore. It does nothing: users have all objects.
func (s *store) Resync() error { return nil }

// setReady notes that it is known what exists.
func (s *store) setReady() { s.readySet.Do(func() { close(s.ready) }) }

func (s *store) isReady() bool {
	select {
	case <-s.ready:
		return true
	default:
		return false
	}
}

// deleteAll reports all objects as deleted.
func (s *store) deleteAll() {
	s.finishArrived()
	var items []*item
	for name := range s.versions {
		items = s.delete(items, name)
	}
	s.deliver(items)
}

// delete forgets an object, and appends its deletion if it was known.
func (s *store) delete(items []*item, name types.NamespacedName) []*item {
	if _, ok := s.versions[name]; !ok {
		return items
	}
	delete(s.versions, name)
	deleted := make([]Event, len(s.users))
	for i, f := range s.users {
		deleted[i] = f.kind.deleted(name)
	}
	return append(items, &item{name: name, events: deleted})
}

// take calls exists for each of the objects, and returns those that are new.
func (s *store) take(objects []any, exists func(types.NamespacedName)) (items []*item, err error) {
	for _, obj := range objects {
		// What came in a streamed list has been decoded.
		it, ok := obj.(*item)
		if !ok {
			if it, err = s.decode(obj); err != nil {
				return items, err
			}
		}
		exists(it.name)
		if it.events != nil {
			s.versions[it.name] = it.version
			items = append(items, it)
		}
	}
	return items, nil
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

// deliver passes the events of each user on.
func (s *store) deliver(items []*item) {
	if len(items) == 0 {
		return
	}
	for i, f := range s.users {
		batch := make([]Event, len(items))
		for j, it := range items {
			batch[j] = it.events[i]
		}
		f.user.deliver(batch)
	}
}
