package cost

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// ranged returns a set of concatenated ranges with n elements.
func ranged(n int, element func(i int) string) (*set.Set, []set.Element) {
	d := nfttest.Must(set.Compile(nft.FamilyIP, &nft.Set{Name: "s", Type: "ipv4_addr . inet_service", Flags: []string{"interval"}}))
	all := make([]set.Element, n)
	for i := range all {
		all[i] = nfttest.Must(d.Pack(nft.Element{Key: element(i)}))
	}
	return d, all
}

// TestMatches counts the elements whose first field one packet matches, and takes them out again.
func TestMatches(t *testing.T) {
	const n = 200
	for name, tt := range map[string]struct {
		element func(i int) string
		want    int
	}{
		"addresses":        {func(i int) string { return fmt.Sprintf("10.0.0.%d . 80", i) }, 1},
		"one address":      {func(i int) string { return fmt.Sprintf("10.0.0.1 . %d", i) }, n},
		"disjoint ranges":  {func(i int) string { return fmt.Sprintf("10.0.%d.0-10.0.%d.7 . 80", i, i) }, 1},
		"nested ranges":    {func(i int) string { return fmt.Sprintf("10.0.0.%d-10.255.255.%d . %d", i, i, i) }, n},
		"both of them":     {func(i int) string { return fmt.Sprintf("10.%d.0.%d-10.%d.0.255 . %d", i%2*8, i, i%2*8, i) }, 0},
		"shares of prefix": {func(i int) string { return fmt.Sprintf("10.0.%d.0-10.0.%d.255 . %d", i/2, i/2, i) }, 2},
	} {
		d, all := ranged(n, tt.element)
		var c Content
		for i := range all {
			c.Add(d, &all[i], 1)
		}
		if got := c.matches(); got != tt.want && tt.want > 0 || got < 1 {
			t.Errorf("%s: one packet matches %d elements, want %d", name, got, tt.want)
		}
		for i := range all {
			c.Add(d, &all[i], -1)
		}
		if got := c.matches(); got != 0 || len(c.overlaps.byPrefix) > 0 || len(c.overlaps.tally) > 0 {
			t.Errorf("%s: %d matches are left", name, got)
		}
	}
}

// TestFit divides elements, each time as many as fit into a transaction.
func TestFit(t *testing.T) {
	d, all := ranged(4000, func(i int) string { return fmt.Sprintf("10.0.%d.%d . 1001-4007", i>>8, i&255) })
	var c Content
	steps := 0
	for left := all; len(left) > 0; steps++ {
		n := c.Fit(d, left, 20*time.Millisecond)
		took := c.Change(d)
		for i := range left[:n] {
			took += c.Addition(d, &left[i])
			c.Add(d, &left[i], 1)
		}
		if n == 0 || took > 21*time.Millisecond {
			t.Fatalf("%d elements are said to take %v", n, took)
		}
		left = left[n:]
	}
	if whole := c.Whole(d); steps < 3 || whole < 20*time.Millisecond*time.Duration(steps-1)/2 {
		t.Errorf("%d steps, and %v for all", steps, whole)
	}
	if n := c.Fit(d, all, 0); n != 1 {
		t.Errorf("%d elements fit into no time", n)
	}
}

// TestPacket tests the time of a packet: for each condition, for those before it, and for connections.
func TestPacket(t *testing.T) {
	visit := func(text string) Visit {
		t.Helper()
		return Packet(nfttest.Must(compile.CompileRule(nft.FamilyIP, nft.Rule{Text: text}, nil)))
	}
	for _, tt := range []struct{ cheap, dear string }{
		{"ip saddr 10.0.0.1", "ip saddr 10.0.0.1 ip daddr 10.0.0.1"},
		{"counter", "limit rate 5/second"},
		{"ip saddr { 10.0.0.1, 10.0.0.2 }", "ip saddr . udp dport { 10.0.0.1-10.0.0.9 . 1-50 }"},
		{"ct count over 5 drop", "ct count over 500 drop"},
		{"ct count over 500 drop", "ct count over 500 accept"},
		{"ct count over 500 drop", "ct count 500 drop"},
	} {
		if cheap, dear := visit(tt.cheap), visit(tt.dear); cheap.Worst >= dear.Worst {
			t.Errorf("%q takes %d ns, and %q %d ns", tt.cheap, cheap.Worst, tt.dear, dear.Worst)
		}
	}
	if a, b := visit("ip saddr 10.0.0.1 drop"), visit("ip saddr 10.0.0.1 ip daddr 10.0.0.1 counter drop"); a.Every != b.Every || a.Ends || b.Ends {
		t.Errorf("up to the first condition packets pay %+v and %+v", a, b)
	}
	if v := visit("counter accept"); v.Every != v.Worst || !v.Ends {
		t.Errorf("a rule without a condition: %+v", v)
	}
}

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
