package source

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestAttemptsOfANode follows an API server that refuses every connection, for an hour of a
// fake clock. The watches make one attempt each, and from then on one in turn. The waits are
// those of one reflector: they double from retryFirst to retryMost, and each is up to twice
// as long.
func TestAttemptsOfANode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var attempts atomic.Int64
		refuse := func(context.Context, string, string) (net.Conn, error) {
			attempts.Add(1)
			return nil, syscall.ECONNREFUSED
		}
		k, err := NewKube(KubeConfig{Server: "http://192.0.2.1:6443", QPS: -1, Dial: refuse})
		must(t, err)
		subscribe(t, k, newRecorder())
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- k.Run(ctx) }()
		const away = time.Hour
		<-time.After(away)
		synctest.Wait()
		const growing = 6 // 0.8 s to 25.6 s
		watches := len(k.watches)
		// A wait is up to twice retryMost, and a turn may come a little later.
		least, most := int64(away/(3*retryMost)), int64(watches+growing)+int64(away/retryMost)
		t.Logf("%d attempts in %v", attempts.Load(), away)
		if n := attempts.Load(); n < least || n > most {
			t.Errorf("%d watches: %d attempts in %v, want %d to %d", watches, n, away, least, most)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestTurns lets five watches of a process fail for a day: each has its turns. One that comes
// after the server has answered does not wait for a turn.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReach("", slog.New(slog.DiscardHandler))
		r.note(nil, syscall.ECONNREFUSED)
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		var turns [5]atomic.Int64
		for i := range turns {
			delay := backoff(retryFirst).DelayFunc()
			go func() {
				for {
					r.await(ctx, delay())
					if ctx.Err() != nil {
						return
					}
					turns[i].Add(1)
					r.note(nil, syscall.ECONNREFUSED)
				}
			}()
		}
		<-ctx.Done()
		synctest.Wait()
		all := int64(0)
		for i := range turns {
			n := turns[i].Load()
			all += n
			if n < 100 {
				t.Errorf("watch %d has %d turns in a day", i, n)
			}
		}
		if most := int64(24*time.Hour/retryMost) + 10; all > most {
			t.Errorf("%d turns in a day: want %d at most", all, most)
		}
		back := r.again()
		<-time.After(3 * retryMost)
		if r.turn(back) != 0 || r.turn(back) == 0 {
			t.Error("a second watch has its turn at once")
		}
		r.note(&http.Response{StatusCode: http.StatusOK}, nil)
		if r.turn(back) != 0 || r.turn(nil) != 0 {
			t.Error("a watch waits for its turn although the server answers")
		}
	})
}
