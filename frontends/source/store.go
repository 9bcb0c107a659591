package source

import (
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// store is what a reflector of client-go feeds. It remembers of each object only
// the version, as much as it takes to see what is new in a list and what has
// gone: the objects themselves are the model's.
//
// A reflector calls it from one goroutine at a time, so it needs no lock.
type store struct {
	kind    *kind
	deliver func([]Event)
	// versions are the resource versions that were delivered last.
	versions map[types.NamespacedName]string
	// ready is closed once it is known what exists.
	ready    chan struct{}
	readySet sync.Once
}

var _ cache.TransformingStore = (*store)(nil)

func newStore(k *kind, deliver func([]Event)) *store {
	return &store{kind: k, deliver: deliver, versions: make(map[types.NamespacedName]string), ready: make(chan struct{})}
}

// Transformer implements cache.TransformingStore: a streamed list is trimmed
// while it comes in.
func (s *store) Transformer() cache.TransformFunc { return trim }

// Add implements cache.ReflectorStore.
func (s *store) Add(obj any) error {
	_, e, err := s.set(obj)
	if err == nil && e != nil {
		s.deliver([]Event{e})
	}
	return err
}

// Update implements cache.ReflectorStore.
func (s *store) Update(obj any) error { return s.Add(obj) }

// Delete implements cache.ReflectorStore. An object that is known to be gone is
// not reported again.
func (s *store) Delete(obj any) error {
	o, ok := obj.(metav1.Object)
	if !ok {
		return fmt.Errorf("take away %s: unexpected object %T", s.kind.resource, obj)
	}
	name := types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
	if _, known := s.versions[name]; known {
		delete(s.versions, name)
		s.deliver([]Event{s.kind.gone(name)})
	}
	return nil
}

// Replace implements cache.ReflectorStore: these objects are all that exist. What
// is not among them went while nobody looked, or between two servers.
func (s *store) Replace(objects []any, _ string) error {
	here, events, err := s.setAll(objects)
	if err == nil {
		for name := range s.versions {
			if _, still := here[name]; !still {
				delete(s.versions, name)
				events = append(events, s.kind.gone(name))
			}
		}
	}
	// What was taken before an error is known now, and has to be told.
	if len(events) > 0 {
		s.deliver(events)
	}
	if err == nil {
		s.settle()
	}
	return err
}

// setAll returns the names in a list, and the events for what is new in it.
func (s *store) setAll(objects []any) (here map[types.NamespacedName]struct{}, events []Event, err error) {
	here = make(map[types.NamespacedName]struct{}, len(objects))
	for _, obj := range objects {
		name, e, err := s.set(obj)
		if err != nil {
			return here, events, err
		}
		here[name] = struct{}{}
		if e != nil {
			events = append(events, e)
		}
	}
	return here, events, nil
}

// Resync implements cache.ReflectorStore. The model forgets nothing that it
// would have to be told again.
func (s *store) Resync() error { return nil }

// settle notes that it is known what exists.
func (s *store) settle() { s.readySet.Do(func() { close(s.ready) }) }

// set returns an object's name, and the event for it: nil if it is known in this
// version, as a list after a lost watch repeats what has not changed.
func (s *store) set(obj any) (types.NamespacedName, Event, error) {
	o, ok := obj.(metav1.Object)
	if !ok {
		return types.NamespacedName{}, nil, fmt.Errorf("take %s: unexpected object %T", s.kind.resource, obj)
	}
	name := types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
	version := o.GetResourceVersion()
	if known, ok := s.versions[name]; ok && version != "" && version == known {
		return name, nil, nil
	}
	if _, err := trim(obj); err != nil {
		return name, nil, err
	}
	e, ok := s.kind.set(obj)
	if !ok {
		return name, nil, fmt.Errorf("take %s: unexpected object %T", s.kind.resource, obj)
	}
	s.versions[name] = version
	return name, e, nil
}
