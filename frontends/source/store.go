package source

import (
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// The reflector calls store from one goroutine at a time, so it needs no lock. A streamed first list is
// delivered while it arrives, because users do not act before Synced. Later lists are delivered at their end.
type store struct {
	users    []follower
	versions map[types.NamespacedName]string
	// closed once the existing objects are known
	ready    chan struct{}
	readySet sync.Once
	// closed once the API server listed the objects or answered that the resource is absent
	resolved    chan struct{}
	resolvedSet sync.Once
	// items of a first list before their delivery; at most one delivery runs
	arrived  []*item
	delivery sync.WaitGroup
}

const maxArrived = 256

type follower struct {
	user *user
	kind *kind
}

type item struct {
	name    types.NamespacedName
	version string
	// one per user; empty if the version is known
	events []Event
}

var _ cache.TransformingStore = (*store)(nil)

func newStore() *store {
	return &store{versions: make(map[types.NamespacedName]string), ready: make(chan struct{}), resolved: make(chan struct{})}
}

// A streamed list is decoded on arrival, so the reflector does not hold its objects.
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

func (s *store) deliverArrived() {
	s.delivery.Wait()
	items := s.arrived
	s.arrived = nil
	s.delivery.Go(func() { s.deliver(items) })
}

func (s *store) finishArrived() {
	if len(s.arrived) > 0 {
		s.deliverArrived()
	}
	s.delivery.Wait()
}

func (s *store) Add(obj any) error { return s.set(obj) }

func (s *store) Update(obj any) error { return s.set(obj) }

func (s *store) set(objects ...any) error {
	s.finishArrived()
	items, err := s.take(objects, func(types.NamespacedName) {})
	s.deliver(items)
	return err
}

func (s *store) Delete(obj any) error {
	s.finishArrived()
	o, err := s.users[0].kind.accepts(obj)
	if err == nil {
		s.deliver(s.delete(nil, nameOf(o)))
	}
	return err
}

// objects are all existing objects.
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
	// Items before an error have recorded versions, so deliver them.
	s.deliver(items)
	if err == nil {
		s.resolve()
		s.setReady()
	}
	return err
}

func (s *store) resolve() { s.resolvedSet.Do(func() { close(s.resolved) }) }

func (s *store) Resync() error { return nil }

func (s *store) setReady() { s.readySet.Do(func() { close(s.ready) }) }

func (s *store) isReady() bool {
	select {
	case <-s.ready:
		return true
	default:
		return false
	}
}

func (s *store) deleteAll() {
	s.finishArrived()
	var items []*item
	for name := range s.versions {
		items = s.delete(items, name)
	}
	s.deliver(items)
}

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

// take calls exists for each object and returns the new ones.
func (s *store) take(objects []any, exists func(types.NamespacedName)) (items []*item, err error) {
	for _, obj := range objects {
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

// A list after a lost watch repeats unchanged objects: their version is known.
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
