package desired

import (
	"errors"
	"fmt"
)

var errNotAdopted = errors.New("fragment is not waiting for its publisher")

// DropAdopted withdraws an adopted fragment. It counts as a change like an
// Apply.
// Possible errors: one that wraps [errNotAdopted]; *[Rejection], if other
// fragments refer to objects that it holds.
func (s *State) DropAdopted(key Key) error {
	f, ok := s.fragments[key]
	if !ok || !f.adopted {
		return fmt.Errorf("drop adopted fragment %s: %w", key, errNotAdopted)
	}
	return s.change(key, func(a *apply) {
		a.f = f
		a.withdraw(f)
	})
}
