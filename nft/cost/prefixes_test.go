package cost

import (
	"math/rand/v2"
	"testing"
)

// slow divides a range of bytes into prefixes, by hand.
func slow(low, high int) int {
	n := 0
	for low <= high {
		size := 1
		for low%(2*size) == 0 && low+2*size-1 <= high {
			size *= 2
		}
		low += size
		n++
	}
	return n
}

func TestPrefixes(t *testing.T) {
	for low := range 256 {
		for high := low; high < 256; high++ {
			if got, want := Prefixes(string([]byte{byte(low)}), string([]byte{byte(high)})), slow(low, high); got != want {
				t.Fatalf("%d to %d: %d prefixes, want %d", low, high, got, want)
			}
		}
	}
	for range 10_000 {
		low, high := rand.IntN(1<<16), rand.IntN(1<<16) //nolint:gosec // any numbers
		low, high = min(low, high), max(low, high)
		text := func(n int) string { return string([]byte{byte(n >> 8), byte(n)}) }
		if got, want := Prefixes(text(low), text(high)), slow(low, high); got != want {
			t.Fatalf("%d to %d: %d prefixes, want %d", low, high, got, want)
		}
	}
}
