package model

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drawEndpoint is an endpoint of which there are few, of one family.
func drawEndpoint(f Family) *rapid.Generator[Endpoint] {
	return rapid.Custom(func(t *rapid.T) Endpoint {
		n := rapid.ByteRange(1, 20).Draw(t, "address")
		a := netip.AddrFrom4([4]byte{10, n, 0, n})
		if f == IPv6 {
			a = netip.AddrFrom16([16]byte{0xfd, 14: 1, 15: n})
		}
		return Endpoint{Addr: netip.AddrPortFrom(a, rapid.Uint16Range(255, 257).Draw(t, "port")), Local: rapid.Bool().Draw(t, "local")}
	})
}

// listed is the plain form of a list: sorted, of repeats the first.
func listed(in []Endpoint) []Endpoint {
	out := slices.Clone(in)
	slices.SortStableFunc(out, func(a, b Endpoint) int { return a.Addr.Compare(b.Addr) })
	return slices.CompactFunc(out, func(a, b Endpoint) bool { return a.Addr == b.Addr })
}

// TestEndpointsAreAList: lists of endpoints of a family do what plain ones do.
func TestEndpointsAreAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.SampledFrom([]Family{IPv4, IPv6}).Draw(t, "family")
		var noExtras [2][]Endpoint
		var packed [2]Endpoints
		for i := range noExtras {
			all := rapid.SliceOfN(drawEndpoint(f), 0, 100).Draw(t, "endpoints")
			noExtras[i], packed[i] = listed(all), MakeEndpoints(all...)
		}
		for i := range noExtras {
			if got := slices.Collect(packed[i].All()); !slices.Equal(got, noExtras[i]) || packed[i].Len() != len(noExtras[i]) {
				t.Fatalf("%v, want %v", got, noExtras[i])
			}
			for range packed[i].All() {
				break
			}
		}
		for _, e := range slices.Concat(noExtras[0], noExtras[1]) {
			want := slices.ContainsFunc(noExtras[0], func(o Endpoint) bool { return o.Addr == e.Addr })
			if packed[0].Has(e.Addr) != want {
				t.Fatalf("has %s: want %v", e.Addr, want)
			}
		}
		if packed[0].Has(netip.AddrPortFrom(netip.IPv6Unspecified(), 80)) || packed[0].Has(netip.AddrPortFrom(netip.IPv4Unspecified(), 80)) {
			t.Fatal("has an address of no endpoint")
		}
		checkSince(t, noExtras[0], noExtras[1], packed[0], packed[1])
		checkSince(t, noExtras[0], noExtras[0], packed[0], MakeEndpoints(noExtras[0]...))
	})
}

// checkSince compares Equal and Diff with plain lists.
func checkSince(t *rapid.T, was, now []Endpoint, a, b Endpoints) {
	if got := b.Equal(a); got != slices.Equal(was, now) {
		t.Fatalf("equal: %v, lists are %v and %v", got, was, now)
	}
	type move struct {
		Endpoint
		came bool
	}
	var got, want []move
	for _, e := range was {
		if !slices.Contains(now, e) {
			want = append(want, move{e, false})
		}
	}
	for _, e := range now {
		if !slices.Contains(was, e) {
			want = append(want, move{e, true})
		}
	}
	slices.SortStableFunc(want, func(a, b move) int { return a.Addr.Compare(b.Addr) })
	b.Diff(a, func(e Endpoint) { got = append(got, move{e, false}) }, func(e Endpoint) { got = append(got, move{e, true}) })
	if !slices.Equal(got, want) {
		t.Fatalf("since: %v, want %v", got, want)
	}
}

// TestIterationDoesNotAllocate: not for each endpoint.
func TestIterationDoesNotAllocate(t *testing.T) {
	var all []Endpoint
	for i := range 10_000 {
		all = append(all, Endpoint{Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), 80)})
	}
	list, n := MakeEndpoints(all...), 0
	if got := testing.AllocsPerRun(10, func() {
		for e := range list.All() {
			n += int(e.Addr.Port())
		}
	}); got > 10 {
		t.Errorf("%v allocations for %d endpoints", got, list.Len())
	}
}

// entryOf is an IPv4 entry that has a number for its address.
func entryOf(n uint32, marks byte) (e entry) {
	binary.BigEndian.PutUint32(e[:], n)
	e[widthIPv4-1] = marks
	return e
}

// entries returns the entries of a packed list.
func entries(list string) (out []entry) {
	for ; list != ""; list = list[widthIPv4:] {
		var e entry
		copy(e[:], list[:widthIPv4])
		out = append(out, e)
	}
	return out
}

func drawEntries(t *rapid.T, name string) (out []entry) {
	n := rapid.SampledFrom([]int{0, 1, 2, 20, 200, 2000}).Draw(t, name)
	span := rapid.SampledFrom([]uint32{1, 50, 1000, 5000}).Draw(t, "span")
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	for range n {
		out = append(out, entryOf(r.Uint32N(span), byte(r.IntN(3))))
	}
	return out
}

// TestReplaceIsPlain: a list with replaced entries is the list packed from the entries that are left.
func TestReplaceIsPlain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kept, was, now := drawEntries(t, "kept"), drawEntries(t, "was"), drawEntries(t, "now")
		old := packSorted(slices.Concat(kept, was), widthIPv4)
		want := packSorted(slices.Concat(kept, now), widthIPv4)
		if !slices.IsSortedFunc(entries(old), compareEntries) || len(old) != (len(kept)+len(was))*widthIPv4 {
			t.Fatalf("%x is not sorted, or lacks entries", old)
		}
		got := replaceEntries(old, was, now, widthIPv4)
		if got != want {
			t.Fatalf("from %x: %x, want %x", old, got, want)
		}
		checkDiff(t, old, got)
		checkDiff(t, packSorted(was, widthIPv4), packSorted(now, widthIPv4))
		checkRepeats(t, got)
	})
}

// checkDiff: the differences lead from one list to the other, in order.
func checkDiff(t *rapid.T, was, now string) {
	out, last := was, ""
	diffPacked(was, now, widthIPv4, func(s string, came bool) {
		if s[:widthIPv4-1] < last {
			t.Fatalf("%x comes after %x", s, last)
		}
		last = s[:widthIPv4-1]
		if came {
			out = replaceEntries(out, nil, entries(s), widthIPv4)
		} else {
			out = replaceEntries(out, entries(s), nil, widthIPv4)
		}
	})
	if out != now {
		t.Fatalf("from %x: %x, want %x", was, out, now)
	}
}

func checkRepeats(t *rapid.T, list string) {
	want := slices.CompactFunc(entries(list), func(a, b entry) bool { return string(a[:widthIPv4-1]) == string(b[:widthIPv4-1]) })
	if got := withoutRepeats(list, widthIPv4); !slices.Equal(entries(got), want) {
		t.Fatalf("%x without repeats: %x, want %x", list, got, want)
	}
}
