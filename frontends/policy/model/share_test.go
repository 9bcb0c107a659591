package model

import (
	"fmt"
	"hash/maphash"
	"testing"
)

// TestSharedLists uses and releases lists, also with the same hash for all.
func TestSharedLists(t *testing.T) {
	for name, write := range map[string]func(*maphash.Hash, label){"hash": writeLabel, "collisions": func(*maphash.Hash, label) {}} {
		s := newSharedLists(write)
		const n = 4
		list := func(i int) []label { return []label{{"app", fmt.Sprint(i)}} }
		var used [2][n]*sharedList[label]
		for round := range used {
			for i := range n {
				used[round][i] = s.use(list(i))
				if got := used[round][i]; got != used[0][i] || got.values[0] != list(i)[0] {
					t.Errorf("%s: list %d is %v", name, i, got.values)
				}
			}
		}
		// One in the middle, the first and the last of a hash.
		for _, i := range []int{1, n - 1, 0, 2} {
			s.release(used[0][i])
			if s.use(list(i)) != used[0][i] {
				t.Errorf("%s: list %d is gone", name, i)
			}
			s.release(used[0][i])
			s.release(used[0][i])
			again := s.use(list(i))
			if again == used[0][i] {
				t.Errorf("%s: list %d is still there", name, i)
			}
			s.release(again)
		}
		if len(s.byHash) > 0 {
			t.Errorf("%s: %d lists are left", name, len(s.byHash))
		}
	}
}
