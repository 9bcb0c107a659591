package packed

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	nftset "github.com/weft-proxy/weft/nft/set"
)

// declarations returns a declaration for each way to pack elements.
func declarations() map[string]*nftset.Set {
	addr, key := nftset.Type{Len: 4}, nftset.Type{Len: 16}
	return map[string]*nftset.Set{
		"set":      {Name: "s", Key: addr, Flags: nftset.FlagTimeout},
		"interval": {Name: "i", Key: addr, Flags: nftset.FlagInterval},
		"map":      {Name: "m", Key: key, Map: true, Data: nftset.Type{Len: 8}},
		"verdicts": {Name: "v", Key: key, Map: true, Verdict: true},
	}
}

// keyOf returns a key of the map for an address.
func keyOf(addr string) string { return fmt.Sprintf("%-16s", addr) }

// TestElementsAreAMap does the same to packed elements and to a map, through
// growing and shrinking over several chunks.
func TestElementsAreAMap(t *testing.T) {
	for name, d := range declarations() {
		t.Run(name, func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			r := rand.New(rand.NewPCG(seed, 1))
			el, want := New(d, r.IntN(3)), map[string]nftset.Element{}
			for step := range 30_000 {
				e := anyElement(r, d)
				id := ID(d, &e)
				// Half of the time it grows, and shrinks in the other half.
				if grow := step/6000%2 == 0; r.IntN(4) > 0 == grow {
					el.Put(id, &e)
					want[id] = e
				} else {
					el.Remove(id)
					delete(want, id)
				}
				got, ok := el.Get(id)
				if _, there := want[id]; ok != there || ok && got != e || el.Has(id) != there || el.Len() != len(want) {
					t.Fatalf("step %d: element %q is %+v (%t) of %d, want %+v (%t) of %d", step, id, got, ok, el.Len(), e, there, len(want))
				}
				if step%3000 == 0 {
					compareElements(t, el, want)
				}
			}
			for id := range want {
				el.Remove(id)
			}
			compareElements(t, el, nil)
			if len(el.chunks) > 0 || len(el.heads) > 0 || el.extras.n > 0 || len(el.targets.numbers) > 0 {
				t.Errorf("no elements hold %d chunks, %d buckets, %d extras, %d words", len(el.chunks), len(el.heads), el.extras.n, len(el.targets.numbers))
			}
		})
	}
}

// anyElement makes one of about 4,000 elements of a declaration; few are odd.
func anyElement(r *rand.Rand, d *nftset.Set) nftset.Element {
	key := make([]byte, d.Key.Len)
	binary.BigEndian.PutUint32(key, r.Uint32N(4000))
	e := nftset.Element{Key: string(key)}
	if d.Flags&nftset.FlagInterval != 0 {
		key[0] = 1
		e.KeyEnd = string(key)
	}
	switch {
	case d.Verdict:
		e.Data = "\xff\xff\xff\xfc" + fmt.Sprint("pick-", r.IntN(20))
	case d.Map:
		data := make([]byte, d.Data.Len)
		data[0] = byte(r.IntN(256))
		e.Data = string(data)
	}
	switch r.IntN(20) {
	case 0:
		e.Comment = fmt.Sprint("number ", r.IntN(100))
	case 1:
		e.Timeout = time.Duration(r.IntN(100)) * time.Second
	case 2:
		e.Data += "odd"
	}
	return e
}

func compareElements(t *testing.T, el *Elements, want map[string]nftset.Element) {
	t.Helper()
	if got := maps.Collect(el.All()); !maps.Equal(got, want) {
		t.Fatalf("%d elements, want %d, or they differ", len(got), len(want))
	}
	bytes := 0
	for id, e := range want {
		bytes += Bytes(id, &e)
		other := e
		other.Comment += "!"
		if had, same := el.Same(id, &e); !had || !same {
			t.Errorf("element %q is not the same as itself", id)
		}
		if had, same := el.Same(id, &other); !had || same {
			t.Errorf("element %q is the same with another comment", id)
		}
	}
	if got := el.Bytes(); got != bytes {
		t.Errorf("elements have %d bytes, want %d", got, bytes)
	}
	ids := el.IDs()
	if sorted := slices.Sorted(maps.Keys(want)); strings.Join(ids, ",") != strings.Join(sorted, ",") {
		t.Errorf("%d IDs, want %d in order", len(ids), len(sorted))
	}
}

func TestElementsDiffer(t *testing.T) {
	d := declarations()["map"]
	a, b := New(d, 0), New(d, 0)
	put := func(el *Elements, key, value string) {
		e := nftset.Element{Key: keyOf(key), Data: value[:8]}
		el.Put(e.Key, &e)
	}
	put(a, "10.0.0.1", "10.1.0.1")
	put(b, "10.0.0.1", "10.1.0.2")
	put(a, "10.0.0.2", "10.1.0.1")
	put(b, "10.0.0.2", "10.1.0.1")
	put(a, "10.0.0.3", "10.1.0.1")
	for key, want := range map[string]bool{"10.0.0.1": true, "10.0.0.2": false, "10.0.0.3": false, "10.0.0.4": false} {
		if a.Differs(b, keyOf(key)) != want || b.Differs(a, keyOf(key)) != want {
			t.Errorf("element %s differs: want %t", key, want)
		}
	}
}

// TestLookupsAllocateNothing pins what the cost of a snapshot that is repeated
// depends on.
func TestLookupsAllocateNothing(t *testing.T) {
	e := nftset.Element{Key: strings.Repeat("k", 16), Data: strings.Repeat("d", 8)}
	el := New(declarations()["map"], 1)
	el.Put(e.Key, &e)
	if n := testing.AllocsPerRun(100, func() {
		if had, same := el.Same(e.Key, &e); !had || !same || !el.Has(e.Key) {
			t.Error("the element is not there")
		}
		el.Put(e.Key, &e)
	}); n != 0 {
		t.Errorf("lookups allocate %v times, want 0", n)
	}
}
