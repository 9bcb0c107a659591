package source

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Source delivers the objects of a cluster to its users: *Kube or *Manifests.
type Source interface {
	// Subscribe adds a user. It must not be called after Run, or concurrently. An error
	// means that a required field is missing, a selector is not valid, or the scheme
	// of a Kind does not have the type of its Object.
	Subscribe(s Subscription) error
	// Run delivers events to all users until ctx ends, and returns nil then. The
	// first batches of a user bring what exists, then its Synced is called; from
	// then on each batch is a change.
	Run(ctx context.Context) error
}

// Subscription is one user of a Source: what it follows, and the functions that
// receive it. Deliver, Synced and Unread are called from goroutines of the source, one call
// at a time for each user, so they should return soon.
type Subscription struct {
	// User names the user in logs. Required.
	User string
	// Kinds are the kinds of objects to follow, each a Kind. Required.
	Kinds []AnyKind
	// Deliver receives a batch of changes, and applies each with Event.Apply, in order
	// and before it returns. Required.
	Deliver func(events []Event)
	// Synced is called once: everything that existed at the start has been
	// delivered.
	Synced func()
	// Unread receives what could not be read since the start, so that what is in it is not known:
	// files of a directory of manifests that existed then and have not been valid, and Custom
	// resources that the API server has and does not list. It is called before Synced if there
	// are such, and when they change. It may be nil.
	Unread func(names []string)
}

// Event is one change: an object of a kind exists in a new form, or no longer.
type Event struct {
	kind  *kind
	apply func()
}

// Resource returns the resource of the object, such as "services".
func (e Event) Resource() string { return e.kind.resource.Resource }

// Apply calls Set or Delete of the object's Kind. Deliver calls it, under the lock of what
// it changes.
func (e Event) Apply() { e.apply() }

// Changes returns a function for a Source that is not of this package. That function
// returns the events of a change, one for each Kind that selects the object: before is nil
// if the object did not exist, after if it does not exist any more. The subscriber keeps
// after, and may modify it. An error means that s is not valid, as in Source.Subscribe.
func (s *Subscription) Changes() (func(before, after Object) []Event, error) {
	u, err := newUser(*s)
	if err != nil {
		return nil, err
	}
	return u.change, nil
}

// user is a subscription that is in force.
type user struct {
	Subscription
	kinds []*kind
	// watches are those of a Kube, one for each of kinds.
	watches []*resourceWatch
	// mu lets one goroutine at a time call the functions of the subscription.
	mu sync.Mutex
}

// newUser validates a subscription.
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

// deliver passes events on, if there are any.
func (u *user) deliver(events []Event) {
	if len(events) == 0 {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.Deliver(events)
}

// synced tells the user that it knows everything.
func (u *user) synced() {
	if u.Synced == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.Synced()
}

// reportUnread tells the user what is not known.
func (u *user) reportUnread(names []string) {
	if u.Unread == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.Unread(names)
}

// change returns the events of a change, without a server that applies the selectors. The
// events hold after.
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

// Check returns an error if a frontend lacks its source of objects or the name of its node.
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
