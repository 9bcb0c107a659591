package scale

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// The monitor hears a bare socket's commits: each address, and the number of elements.
func TestMonitor(t *testing.T) {
	n, err := lab.NewNamespace("monitor")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	m, err := newMonitor(n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.close(); err != nil {
			t.Error(err)
		}
	})
	var b bare
	if err := n.Do(b.open); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(b.fd) })
	commit := func(messages ...[]byte) {
		t.Helper()
		begin, end := batchEdge(unix.NFNL_MSG_BATCH_BEGIN), batchEdge(unix.NFNL_MSG_BATCH_END)
		if _, err := b.send(slices.Concat(begin, slices.Concat(messages...), end)); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()

	first, last := netip.MustParseAddr("10.0.0.3"), netip.MustParseAddr("10.0.0.19")
	start := time.Now()
	m.expect(first, last)
	commit(newTable(), newMap(), elementsMessage(unix.NFT_MSG_NEWSETELEM, 0, 20, 0, true))
	arrived, err := m.all(ctx)
	if err != nil || arrived.Before(start) || m.when(first).IsZero() || m.when(last) != arrived {
		t.Errorf("%s came %v, all %v, error %v; began %v", first, m.when(first), arrived, err, start)
	}
	if at, err := m.next(ctx, start); err != nil || at.Before(arrived) {
		t.Errorf("commit %v, error %v; the last address came %v", at, err, arrived)
	}
	if elements, rules := m.written(); elements != 20 || rules != 0 {
		t.Errorf("%d elements and %d rules written, want 20 and none", elements, rules)
	}

	// A removal has no address, but is a commit.
	before := time.Now()
	commit(elementsMessage(unix.NFT_MSG_DELSETELEM, 3, 4, 0, false), elementsMessage(unix.NFT_MSG_NEWSETELEM, 3, 4, 1, true))
	if at, err := m.next(ctx, before); err != nil || at.Before(before) {
		t.Errorf("commit %v, error %v; want one after %v", at, err, before)
	}
	if elements, _ := m.written(); elements != 2 {
		t.Errorf("%d elements written, want 2", elements)
	}

	// A missing address can be forgotten.
	m.expect(netip.MustParseAddr("10.0.0.99"))
	short, stop := context.WithTimeout(ctx, 20*time.Millisecond)
	defer stop()
	if _, err := m.all(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want that it did not come", err)
	}
	if n := m.forget(); n != 1 {
		t.Errorf("%d forgotten, want 1", n)
	}
}

// The floor replaces elements of a map of that size.
func TestFloor(t *testing.T) {
	f, err := measureFloor(size{20, 10})
	if err != nil || f.all <= 0 || f.one <= 0 || f.one > f.all {
		t.Errorf("floor %+v, error %v", f, err)
	}
}
