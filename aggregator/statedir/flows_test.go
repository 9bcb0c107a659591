package statedir

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"github.com/weft-proxy/weft/conntrack"
)

// lost returns n destinations that have lost their last backend.
func lost(n int) []conntrack.Change {
	out := make([]conntrack.Change, n)
	for i := range out {
		out[i] = conntrack.Change{
			Addr: netip.MustParseAddr("10.96.0.1"), Port: uint16(i), //nolint:gosec // a port
			Removed: []netip.AddrPort{netip.MustParseAddrPort("10.1.0.1:53")},
		}
	}
	return out
}

// wantNoted compares the notes that an earlier run has stored.
func wantNoted(t *testing.T, c *Contents, want []conntrack.Change) {
	t.Helper()
	if fmt.Sprint(c.Flows) != fmt.Sprint(want) {
		t.Errorf("%v is noted, want %v", c.Flows, want)
	}
}

func TestNotesAreRead(t *testing.T) {
	dir := t.TempDir()
	d, c := load(t, dir)
	wantNoted(t, c, nil)
	must(t, d.SaveFlows(lost(3)))
	must(t, d.Close())
	for range 2 {
		d, c = load(t, dir)
		wantNoted(t, c, lost(3))
		must(t, d.Close())
	}
	d, _ = load(t, dir)
	must(t, d.SaveFlows(nil))
	must(t, d.Close())
	_, c = load(t, dir)
	wantNoted(t, c, nil)
}

// BenchmarkNote is what a commit that leaves destinations without a backend waits for.
func BenchmarkNote(b *testing.B) {
	for _, n := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprintf("%d destinations", n), func(b *testing.B) {
			d, _ := load(b, b.TempDir())
			deserted := lost(n)
			b.ReportAllocs()
			for b.Loop() {
				if err := errors.Join(d.SaveFlows(deserted), d.SaveFlows(nil)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
