package source

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	maxTurnJitter = 0.1
	// maxSpread is the longest wait of a client-go reflector.
	maxSpread = 2 * retryMost
)

// reach tracks whether the API server answers. Reflectors of client-go v0.36 retry refused connections
// silently.
type reach struct {
	log    *slog.Logger
	server string

	mu   sync.Mutex
	next time.Time
	// waits are between turns. After retryReset without a turn they restart with the duration first.
	// DelayWithReset of apimachinery v0.36 restarts every two minutes even during an outage.
	waits wait.Backoff
	first time.Duration
	// closed when the server answers again; nil while it answers
	back chan struct{}
	// last outage's start and end
	away, returned time.Time
	spread         time.Duration
	// a watch could not continue after the last return
	expired bool
	last    error
}

func newReach(server string, log *slog.Logger) *reach {
	return &reach{server: server, log: log, first: retryFirst}
}

// await waits for d, and during an outage for the caller's turn. If the server answers another request,
// await returns within the spread.
func (r *reach) await(ctx context.Context, d time.Duration) {
	back := r.again()
	for ; d > 0; d = r.turn(back) {
		select {
		case <-time.After(d):
		case <-ctx.Done():
			return
		case <-back:
			sleep(ctx, min(d, rand.N(r.spreading()))) //nolint:gosec // not a secret
			return
		}
	}
}

// turn returns 0 if the caller may make a request, else the wait, plus a random part to give every watch a
// turn.
func (r *reach) turn(back <-chan struct{}) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if back == nil || back != (<-chan struct{})(r.back) {
		return 0
	}
	if left := time.Until(r.next); left > 0 {
		return wait.Jitter(left, maxTurnJitter)
	}
	if time.Since(r.next) > retryReset {
		r.waits = *backoff(r.first)
	}
	r.next = time.Now().Add(r.waits.Step())
	return 0
}

// spreading is the length of the outage, from retryBack to maxSpread.
func (r *reach) spreading() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(r.spread, retryBack)
}

// ended reports whether this watch was the process's first to fail to continue after the server's return. A
// restarted server knows no earlier resource version.
func (r *reach) ended(listed, continued time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	first := r.backSince(listed) && continued.After(r.returned)
	r.expired = r.expired || first
	return first
}

// lost reports whether a watch listed before the server's return must list again, because ended was true.
func (r *reach) lost(listed time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.expired && r.backSince(listed)
}

func (r *reach) backSince(t time.Time) bool {
	return r.back == nil && t.Before(r.returned) && time.Since(r.returned) < 2*maxSpread
}

func (r *reach) current() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

func (r *reach) again() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.back
}

// note records an answer. An internal error means that the server starts or stops. Refused credentials count
// as no answer.
func (r *reach) note(a *http.Response, err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	switch {
	case err != nil:
	case a.StatusCode == http.StatusUnauthorized:
		err = fmt.Errorf("it refuses the credentials: status %s", a.Status)
	case a.StatusCode >= http.StatusInternalServerError:
		err = fmt.Errorf("status %s", a.Status)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = err
	switch {
	case err == nil && r.back != nil:
		close(r.back)
		r.back, r.expired, r.returned = nil, false, time.Now()
		r.spread = min(max(time.Since(r.away), retryBack), maxSpread)
		r.log.Info("the Kubernetes API answers again", "server", r.server)
	case err != nil && r.back == nil:
		r.back, r.away = make(chan struct{}), time.Now()
		r.log.Error("the Kubernetes API does not answer: keeping the last state and retrying", "server", r.server, "error", err)
	}
}

type transport struct {
	next      http.RoundTripper
	reach     *reach
	connected chan<- struct{}
}

func (t *transport) RoundTrip(q *http.Request) (*http.Response, error) {
	if q.URL.Path != versionPath {
		q = q.WithContext(httptrace.WithClientTrace(q.Context(), &httptrace.ClientTrace{GotConn: t.gotConn}))
	}
	a, err := t.next.RoundTrip(q)
	t.reach.note(a, err)
	return a, err
}

func (t *transport) gotConn(i httptrace.GotConnInfo) {
	if i.Reused {
		return
	}
	select {
	case t.connected <- struct{}{}:
	default:
	}
}

// WrappedRoundTripper lets client-go close idle connections.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }
