package desired

import (
	"fmt"
	"slices"
	"time"
)

// Lifetime says when a fragment is withdrawn without an update. The numbers are
// those of Lifetime in weft.proto.
type Lifetime int32

const (
	// LifetimeUnspecified means the same as LifetimeSticky.
	LifetimeUnspecified Lifetime = 0
	// LifetimeSticky keeps the fragment when its publisher or the aggregator
	// restarts.
	LifetimeSticky Lifetime = 1
	// LifetimeSession withdraws the fragment when the session that sent it ends.
	LifetimeSession Lifetime = 2
	// LifetimeDurable stores the fragment, so that it is committed again after a
	// reboot.
	LifetimeDurable Lifetime = 3
)

// lifetimeNames are the texts of lifetimes in a Record, by their numbers.
var lifetimeNames = [...]string{"", "sticky", "session", "durable"}

// String returns the name of the lifetime.
func (l Lifetime) String() string {
	if l < 0 || int(l) >= len(lifetimeNames) {
		return fmt.Sprintf("lifetime(%d)", int32(l))
	}
	return lifetimeNames[l]
}

// parseLifetime returns the lifetime with a name. An unknown name means sticky.
func parseLifetime(name string) Lifetime {
	if i := slices.Index(lifetimeNames[:], name); i >= 0 {
		return Lifetime(i) //nolint:gosec // less than the length of the table
	}
	return LifetimeSticky
}

// identity is what decides who may change a fragment, and where it comes in the
// merge. A snapshot replaces all of it.
type identity struct {
	priority int32
	lifetime Lifetime
	// expires is when it is to be withdrawn; zero means never.
	expires time.Time
	// session sent the last snapshot, as its update number serial. It is 0 if no
	// session did.
	session, serial uint64
	// adopted is true from Adopt until the fragment's snapshot arrives.
	adopted bool
}

// setIdentity changes the identity of a fragment. Its shares must not be in any
// list while the priority changes.
func (s *State) setIdentity(f *fragment, id identity) {
	if id.lifetime != f.lifetime {
		s.noteLifetime(f.key)
	}
	old := f.identity
	recorded := old.priority != id.priority || old.lifetime != id.lifetime || old.expires != id.expires || old.adopted != id.adopted
	do(s, func(id identity) {
		f.identity = id
		if recorded {
			s.recordedAt++
		}
	}, id, old)
}

// noteLifetime remembers the lifetime that a fragment has as of the last Accept,
// before it changes.
func (s *State) noteLifetime(key Key) {
	if _, ok := s.lifetimes[key]; ok {
		return
	}
	s.lifetimes[key] = LifetimeUnspecified
	if f := s.fragments[key]; f != nil {
		s.lifetimes[key] = f.lifetime
	}
}

// recordedLifetime returns the lifetime for a Record. A committed fragment that
// becomes one of a session is recorded as such only after the commit: if the
// process dies in between, the next one would withdraw the fragment.
func (s *State) recordedLifetime(f *fragment) Lifetime {
	if before := s.lifetimes[f.key]; before != LifetimeUnspecified && f.lifetime == LifetimeSession {
		return before
	}
	return f.lifetime
}

// acceptLifetimes makes the present lifetimes those of the last Accept.
func (s *State) acceptLifetimes() {
	for key, before := range s.lifetimes {
		if f := s.fragments[key]; f != nil && before != LifetimeUnspecified && before != f.lifetime {
			// The record may have the lifetime from before.
			s.recordedAt++
		}
	}
}
