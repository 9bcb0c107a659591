package packed

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	nftset "github.com/weft-proxy/weft/nft/set"
)

// TestViewsStay changes elements at random, and compares each view with a copy of the
// elements from the time when it was made.
func TestViewsStay(t *testing.T) {
	for name, d := range declarations() {
		t.Run(name, func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			r := rand.New(rand.NewPCG(seed, 2))
			el, now := New(d, 0), map[string]nftset.Element{}
			type view struct {
				*View
				want map[string]nftset.Element
			}
			var views []view
			for step := range 12_000 {
				e := anyElement(r, d)
				id := ID(d, &e)
				if grow := step/4000%2 == 0; r.IntN(4) > 0 == grow {
					el.Put(id, &e)
					now[id] = e
				} else {
					el.Remove(id)
					delete(now, id)
				}
				if step%500 != 0 {
					continue
				}
				views = append(views, view{el.View(), maps.Clone(now)})
				if len(views) > 3 {
					views = views[1:]
				}
				for _, v := range views {
					var want []nftset.Element
					for _, id := range slices.Sorted(maps.Keys(v.want)) {
						want = append(want, v.want[id])
					}
					if got := slices.Collect(v.Sorted()); !slices.Equal(got, want) {
						t.Fatalf("step %d: a view has %d elements, want %d, or others", step, len(got), len(want))
					}
				}
			}
		})
	}
}
