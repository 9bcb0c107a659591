package aggregator

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"testing"

	"github.com/weft-proxy/weft/conntrack"
)

// lost returns n destinations that have lost their last backend.
func lost(n int) []conntrack.Stale {
	out := make([]conntrack.Stale, n)
	for i := range out {
		out[i] = conntrack.Stale{
			Addr: netip.MustParseAddr("10.96.0.1"), Port: uint16(i), //nolint:gosec // a port
			Gone: []netip.AddrPort{netip.MustParseAddrPort("10.1.0.1:53")},
		}
	}
	return out
}

func TestNotesAreRead(t *testing.T) {
	dir := t.TempDir()
	n := &flowNotes{dir: dir}
	if err := n.Save(lost(3)); err != nil {
		t.Fatal(err)
	}
	n = &flowNotes{dir: dir}
	if got, err := n.Load(); err != nil || fmt.Sprint(got) != fmt.Sprint(lost(3)) {
		t.Errorf("%v (%v) is noted, want %v", got, err, lost(3))
	}
	if err := n.Save(nil); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(n.path()); !os.IsNotExist(err) {
		t.Errorf("the file is still there: %v", err)
	}
}

func TestDamagedNotesAreRemoved(t *testing.T) {
	for _, damage := range []string{"", "weft-flows 1 sha256:00\n[]", string(noteSeal.add([]byte("{")))} {
		n := &flowNotes{dir: t.TempDir()}
		if err := os.WriteFile(n.path(), []byte(damage), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := n.Load(); err == nil || len(got) > 0 {
			t.Errorf("damage %q: %v is noted (%v)", damage, got, err)
		}
		if got, err := n.Load(); err != nil || len(got) > 0 {
			t.Errorf("damage %q: %v is noted after that (%v)", damage, got, err)
		}
		if err := n.Save(lost(1)); err != nil {
			t.Error(err)
		}
		if got, err := n.Load(); err != nil || len(got) != 1 {
			t.Errorf("after damage %v is noted (%v)", got, err)
		}
	}
}

// BenchmarkNote is what a commit that leaves destinations without a backend waits for.
func BenchmarkNote(b *testing.B) {
	for _, n := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprintf("%d destinations", n), func(b *testing.B) {
			notes, deserted := &flowNotes{dir: b.TempDir()}, lost(n)
			b.ReportAllocs()
			for b.Loop() {
				if err := errors.Join(notes.Save(deserted), notes.Save(nil)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
