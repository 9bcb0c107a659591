package flows

import (
	"context"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-proxy/weft/conntrack"
)

// answering has flows that answers begin after two removals.
type answering struct{ calls [][]conntrack.Change }

func (a *answering) Flush(_ context.Context, stale []conntrack.Change) (int, error) {
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
		if len(a.calls) != 1 {
			t.Fatalf("%d removals at once, want 1", len(a.calls))
		}
		<-time.After(10 * answerDelay)
		synctest.Wait()
		if len(a.calls) != 3 {
			t.Fatalf("%d removals, want 3", len(a.calls))
		}
		for _, stale := range a.calls[1:] {
			if len(stale) != 1 || stale[0].Addr != first.Addr || stale[0].Port != 53 || !stale[0].First || !stale[0].Answered {
				t.Errorf("removed %v, want what %v has begun", stale, first)
			}
		}
		// A comparison that removes flows is followed, too.
		f.Reconcile([]conntrack.Destination{{Addr: first.Addr, Port: 53}})
		<-time.After(10 * answerDelay)
		synctest.Wait()
		if len(a.calls) != 4 || !a.calls[3][0].Answered {
			t.Errorf("%d removals after a comparison, want 4", len(a.calls))
		}
	})
}
