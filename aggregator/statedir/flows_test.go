package statedir

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"

	bolt "go.etcd.io/bbolt"

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

func TestDamagedNotesAreLostAlone(t *testing.T) {
	for _, damage := range []string{"", "x", "[]12345678"} {
		dir := t.TempDir()
		whole(t, dir)
		d, _ := load(t, dir)
		must(t, d.update(func(tx *bolt.Tx) error { return tx.Bucket(stateBucket).Put(flowsKey, []byte(damage)) }))
		must(t, d.Close())
		w := watch(dir)
		c, err := w.Load()
		must(t, err)
		if !c.Trusted || len(c.Fragments) != 2 || w.failed[KindFlows] != 1 || len(w.failed) != 1 {
			t.Errorf("damage %q: failures %v, contents %+v", damage, w.failed, c)
		}
		wantNoted(t, c, nil)
		must(t, w.SaveFlows(lost(1)))
		must(t, w.Close())
		_, c = load(t, dir)
		wantNoted(t, c, lost(1))
	}
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
