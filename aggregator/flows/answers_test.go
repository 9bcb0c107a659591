package flows

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-proxy/weft/conntrack"
)

// answering has flows that answers begin after two removals.
type answering struct {
	mu    sync.Mutex
	calls [][]conntrack.Change
}

// removals returns the calls of Flush.
func (a *answering) removals() [][]conntrack.Change {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.calls)
}

func (a *answering) Flush(_ context.Context, stale []conntrack.Change) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls = append(a.calls, stale)
	return max(3-len(a.calls), 0), nil
}

func (a *answering) Reconcile(context.Context, []conntrack.Destination) (int, error) { return 1, nil }

// TestFlusherFollowsAnswers removes what was not translated, then what answers have begun, until there is none.
func TestFlusherFollowsAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &answering{}
		f, _, stop := runFlusher(t, a)
		defer stop()
		first := conntrack.Change{Addr: netip.MustParseAddr("10.96.0.1"), Port: 53, First: true}
		translated := conntrack.Change{Addr: first.Addr, Port: 54, Removed: []netip.AddrPort{netip.MustParseAddrPort("10.1.0.1:53")}}
		f.After([]conntrack.Change{first, translated}, nil)
		synctest.Wait()
		if n := len(a.removals()); n != 1 {
			t.Fatalf("%d removals at once, want 1", n)
		}
		<-time.After(10 * answerDelay)
		synctest.Wait()
		calls := a.removals()
		if len(calls) != 3 {
			t.Fatalf("%d removals, want 3", len(calls))
		}
		for _, stale := range calls[1:] {
			if len(stale) != 1 || stale[0].Addr != first.Addr || stale[0].Port != 53 || !stale[0].First || !stale[0].Answered {
				t.Errorf("removed %v, want what %v has begun", stale, first)
			}
		}
		// A comparison that removes flows is followed, too.
		f.Reconcile([]conntrack.Destination{{Addr: first.Addr, Port: 53}})
		<-time.After(10 * answerDelay)
		synctest.Wait()
		if calls = a.removals(); len(calls) != 4 || !calls[3][0].Answered {
			t.Errorf("%d removals after a comparison, want 4", len(calls))
		}
	})
}
