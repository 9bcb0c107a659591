package model

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestMergeIsSort: whatever the runs are, the result is that of sorting all.
func TestMergeIsSort(t *testing.T) {
	one := rapid.Custom(func(t *rapid.T) packedEndpoint {
		return entryOf(rapid.Uint32Range(1, 9).Draw(t, "address"), rapid.Byte().Draw(t, "traits"))
	})
	rapid.Check(t, func(t *rapid.T) {
		var m merger
		for range rapid.IntRange(1, 3).Draw(t, "times") {
			var want []packedEndpoint
			all := m.start()
			for range rapid.IntRange(0, 6).Draw(t, "runs") {
				run := rapid.SliceOfN(one, 0, 6).Draw(t, "run")
				if rapid.Bool().Draw(t, "sorted") {
					slices.SortFunc(run, comparePacked)
				}
				all, want = append(all, run...), append(want, run...)
			}
			slices.SortFunc(want, comparePacked)
			if got := m.finish(all); !slices.Equal(got, want) {
				t.Fatalf("merged %v, want %v", got, want)
			}
		}
	})
}

// TestRoomShrinks: room for many is given back, room for few is kept.
func TestRoomShrinks(t *testing.T) {
	var m merger
	for _, tt := range []struct {
		n    int
		kept bool
	}{{100, true}, {10_000, false}, {10, true}} {
		all := m.start()
		for i := range tt.n {
			all = append(all, entryOf(uint32(i^1), 0))
		}
		m.finish(all)
		m.shrink()
		if got := cap(m.room) > 0; got != tt.kept || cap(m.room)+cap(m.spare)+cap(m.runs) > 3*maxIdleRoom {
			t.Errorf("%d: room %d, spare %d, runs %d are kept", tt.n, cap(m.room), cap(m.spare), cap(m.runs))
		}
	}
}
