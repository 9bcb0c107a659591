package model

import (
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestMergeIsSort: whatever the runs are, the result is that of sorting all, of
// repeats the first.
func TestMergeIsSort(t *testing.T) {
	one := rapid.Custom(func(t *rapid.T) candidate {
		return candidate{
			addr:  netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, rapid.ByteRange(1, 9).Draw(t, "address")}), rapid.Uint16Range(1, 2).Draw(t, "port")),
			state: state(rapid.ByteRange(0, 3).Draw(t, "state")), traits: traits(rapid.ByteRange(0, 63).Draw(t, "traits")),
		}
	})
	compare := func(a, b candidate) int { return a.compare(&b) }
	rapid.Check(t, func(t *rapid.T) {
		var m merger
		for range rapid.IntRange(1, 3).Draw(t, "times") {
			var want []candidate
			all := m.start()
			for range rapid.IntRange(0, 6).Draw(t, "runs") {
				run := rapid.SliceOfN(one, 0, 6).Draw(t, "run")
				if rapid.Bool().Draw(t, "sorted") {
					slices.SortFunc(run, compare)
				}
				all, want = append(all, run...), append(want, run...)
			}
			slices.SortFunc(want, compare)
			want = slices.CompactFunc(want, func(a, b candidate) bool { return a.addr == b.addr })
			if got := m.finish(all); !slices.Equal(got, want) {
				t.Fatalf("merged %v, want %v", got, want)
			}
		}
	})
}

// TestRoomShrinks: room for many is given back once few are needed, not before.
func TestRoomShrinks(t *testing.T) {
	var m merger
	fill := func(n int) {
		all := m.start()
		for i := range n {
			all = append(all, candidate{addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i ^ 1)}), 80)})
		}
		m.finish(all)
	}
	fill(10_000)
	m.shrink()
	if cap(m.room) < 10_000 || cap(m.spare) < 10_000 {
		t.Error("what was needed just now is given back")
	}
	fill(10)
	m.shrink()
	if cap(m.room) != 0 || cap(m.spare) != 0 || cap(m.runs) != 0 {
		t.Errorf("room %d, spare %d, runs %d are kept", cap(m.room), cap(m.spare), cap(m.runs))
	}
}
