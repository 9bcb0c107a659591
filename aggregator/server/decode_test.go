package server

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/weft-proxy/weft/aggregator/access"
)

// TestLargeRequestsTakeTurns reserves memory for requests of several publishers.
func TestLargeRequestsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDecoder(nil)
		as := func(publisher string, system bool) caller {
			return caller{Identity: access.Identity{Publisher: publisher, System: system}}
		}
		a, b, c := as("a", false), as("b", false), as("c", false)
		// begin reserves n bytes. The channel gets how to release them.
		begin := func(ctx context.Context, c caller, n int) chan func() {
			done := make(chan func(), 1)
			go func() {
				release, err := d.reserve(ctx, c, n)
				if err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				done <- release
			}()
			synctest.Wait()
			return done
		}
		waits := func(done chan func(), why string) {
			t.Helper()
			if synctest.Wait(); len(done) != 0 {
				t.Fatalf("%s: it has its turn", why)
			}
		}
		first := begin(t.Context(), a, maxDecoding/2)
		release := <-first
		second := begin(t.Context(), a, 1)
		waits(second, "a second of the same publisher")
		ctx, cancel := context.WithCancel(t.Context())
		third := begin(ctx, a, 1)
		cancel()
		if r := <-third; r != nil {
			t.Fatal("a call that was given up has its turn")
		}
		other := begin(t.Context(), b, maxDecoding/2)
		releaseOther := <-other
		full := begin(t.Context(), c, 1)
		waits(full, "all memory is reserved")
		system := begin(t.Context(), as("services", true), 3*maxDecoding)
		(<-system)()
		release()
		(<-second)()
		(<-full)()
		releaseOther()
		(<-begin(t.Context(), a, 2*maxDecoding))()
		if len(d.decoding) != 0 {
			t.Errorf("%d publishers are remembered", len(d.decoding))
		}
	})
}
