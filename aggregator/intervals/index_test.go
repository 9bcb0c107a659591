package intervals

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestIndexIsSorted does the same to an index and to a sorted slice, through growing and shrinking over
// several chunks.
func TestIndexIsSorted(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	key := func(n uint32) string { return string(binary.BigEndian.AppendUint32(nil, n)) }
	x, want := New(4), []string(nil)
	for step := range 20_000 {
		low := r.Uint32N(2000)
		id := key(low) + key(low+r.Uint32N(1<<r.IntN(10)))
		i, there := slices.BinarySearch(want, id)
		if x.Has(id) != there {
			t.Fatalf("step %d: Has(%x) is not %t", step, id, there)
		}
		switch grow := step/5000%2 == 0; {
		case !there && (grow || r.IntN(3) == 0):
			x.Insert(id)
			want = slices.Insert(want, i, id)
		case there:
			x.Remove(id)
			want = slices.Delete(want, i, i+1)
		case len(want) > 0:
			i = r.IntN(len(want))
			x.Remove(want[i])
			want = slices.Delete(want, i, i+1)
		}
		if step%50 > 0 {
			continue
		}
		if x.Len() != len(want) || !slices.Equal(slices.Collect(x.From("")), want) {
			t.Fatalf("step %d: the index has %d IDs, want %d in order", step, x.Len(), len(want))
		}
		probe := key(r.Uint32N(2000))
		i, _ = slices.BinarySearch(want, probe)
		before, covered := "", ""
		for _, id := range want[:i] {
			before, covered = id, max(covered, id[4:])
		}
		last := key(binary.BigEndian.Uint32([]byte(probe)) + r.Uint32N(50))
		overlap := slices.DeleteFunc(slices.Clone(want), func(id string) bool { return id[:4] > last || id[4:] < probe })
		if x.Before(probe) != before || x.Covered(probe) != covered || !slices.Equal(slices.Collect(x.Overlapping(probe, last)), overlap) {
			t.Fatalf("step %d: at %x: before %x, covered %x", step, probe, x.Before(probe), x.Covered(probe))
		}
	}
}
