package source

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/util/version"
)

// Source delivers a cluster's objects to its users: *Kube or *Manifests.
type Source interface {
	// Subscribe adds a user. Do not call it after Run or concurrently. It fails if s is invalid.
	Subscribe(s Subscription) error
	// Run delivers the existing objects, Synced, then changes, until ctx ends.
	Run(ctx context.Context) error
}

// Subscription is a user of a Source. Its functions are called sequentially and should return soon.
type Subscription struct {
	// name in logs; required
	User string
	// required
	Kinds []AnyKind
	// Deliver must apply each event of a batch in order, before it returns. Required.
	Deliver func(events []Event)
	// once, after all initial objects were delivered
	Synced func()
	// Unread receives the names of initial manifest files never valid since the start, and of existing Custom
	// resources not listed. It may be nil.
	Unread func(names []string)
	// Version receives the API server's version, once per connection and first before Synced if the server
	// answers in time. It may be nil. Manifests have no version.
	Version func(*version.Version)
}

// Event is a change: an object's new form or its deletion.
type Event struct {
	kind  *kind
	apply func()
}

// Resource returns the object's resource, such as "services".
func (e Event) Resource() string { return e.kind.resource.Resource }

// Apply calls the Kind's Set or Delete. Deliver calls it under the lock of the changed state.
func (e Event) Apply() { e.apply() }

// Changes returns a function for Sources outside this package: from a changed object to its events, one per
// Kind with a match. before is nil for a new object, after for a deleted one. The subscriber owns after.
func (s *Subscription) Changes() (func(before, after Object) []Event, error) {
	u, err := newUser(*s)
	if err != nil {
		return nil, err
	}
	return u.change, nil
}

type user struct {
	Subscription
	kinds   []*kind
	watches []*resourceWatch
	// serializes calls to the subscription
	mu sync.Mutex
}

func newUser(s Subscription) (*user, error) {
	if s.User == "" || len(s.Kinds) == 0 || s.Deliver == nil {
		return nil, errors.New("subscribe: User, Kinds and Deliver are required")
	}
	u := &user{Subscription: s}
	for _, k := range s.Kinds {
		compiled, err := k.compile()
		if err != nil {
			return nil, fmt.Errorf("subscribe %s to %s: %w", s.User, compiled.resource.Resource, err)
		}
		u.kinds = append(u.kinds, compiled)
	}
	return u, nil
}

func (u *user) deliver(events []Event) {
	if len(events) == 0 {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.Deliver(events)
}

func (u *user) synced() {
	if u.Synced == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.Synced()
}

func (u *user) reportUnread(names []string) {
	if u.Unread == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.Unread(names)
}

// The events own after.
func (u *user) change(before, after Object) []Event {
	var out []Event
	for _, k := range u.kinds {
		switch {
		case k.isOfGoType(after) && k.selects(after):
			out = append(out, k.set(after))
		case k.isOfGoType(before) && k.selects(before):
			out = append(out, k.deleted(nameOf(before)))
		}
	}
	return out
}

// Check returns an error if a frontend lacks its source or node name.
func Check(s Source, node string) error {
	var errs []error
	if s == nil {
		errs = append(errs, errors.New("no source of objects: give a kubeconfig or a directory of manifests"))
	}
	if node == "" {
		errs = append(errs, errors.New("no node name: give the node's name in Kubernetes"))
	}
	return errors.Join(errs...)
}
