package source

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// maxTurnJitter is the largest random part of a wait for a turn.
	maxTurnJitter = 0.1
	// maxSpread is how long the watches of a process take to come back at most: as long as one
	// reflector of client-go waits.
	maxSpread = 2 * retryMost
)

// reach notes when the API server stops answering and when it answers again. The
// reflectors of client-go v0.36 do not: they retry a refused connection silently, each
// after a wait of its own. While the server does not answer, the watches of the process
// try in turn, so that a node with five watches makes a fifth of the requests.
type reach struct {
	log    *slog.Logger
	server string

	mu sync.Mutex
	// next is when the next turn begins.
	next time.Time
	// waits has the times between turns, which grow like those of a reflector. They begin
	// with first again if there was no turn for retryReset. (DelayWithReset of apimachinery
	// v0.36 begins again every two minutes, even while the server does not answer.)
	waits wait.Backoff
	// first is retryFirst, and shorter in tests.
	first time.Duration
	// back is closed when the server answers again. It is nil while it answers.
	back chan struct{}
	// away is when the server stopped answering, returned when it answered again last.
	away, returned time.Time
	// spread is how long the watches of the process take to come back after the last return.
	spread time.Duration
	// expired is true if a watch could not continue after the last return.
	expired bool
	// last is why the server does not answer, nil while it does.
	last error
}

// newReach returns a reach for a server that answers.
func newReach(server string, log *slog.Logger) *reach {
	return &reach{server: server, log: log, first: retryFirst}
}

// await waits for d, as a reflector does between two attempts. While the server does not
// answer, it then waits until it is the turn of its caller. It returns within the spread of
// the return if the server answers another request, and at once if ctx ends.
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

// turn returns 0 if its caller may make a request: if the server has answered since it
// returned back, or if the delay since the last turn is over. Otherwise it returns how long
// to wait for the next turn, longer by a random part so that all waiting watches have turns.
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

// spreading returns within which time the watches of the process come back after the last
// return: as long as the outage took, from retryBack to maxSpread. All nodes of a cluster come back then.
func (r *reach) spreading() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(r.spread, retryBack)
}

// ended notes the end of a watch that was listed and that continued at these times. It reports
// whether it was the first of the process that tried to continue after the server's return, and could
// not: a server that has started anew knows no resource version of before.
func (r *reach) ended(listed, continued time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	first := r.backSince(listed) && continued.After(r.returned)
	r.expired = r.expired || first
	return first
}

// lost reports whether a watch that was listed last at a time cannot continue, because another
// one could not.
func (r *reach) lost(listed time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.expired && r.backSince(listed)
}

// backSince reports whether the server answers, and has returned after a time and not long ago.
func (r *reach) backSince(t time.Time) bool {
	return r.back == nil && t.Before(r.returned) && time.Since(r.returned) < 2*maxSpread
}

// current returns why the server does not answer, nil while it does.
func (r *reach) current() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// again returns a channel that is closed when the server answers again; nil if it has not
// stopped.
func (r *reach) again() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.back
}

// note records the outcome of a request. A server that answers with an internal error
// starts or stops, and one that does not know the credentials is of no more use.
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

// transport makes requests that reach notes.
type transport struct {
	next  http.RoundTripper
	reach *reach
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(q *http.Request) (*http.Response, error) {
	a, err := t.next.RoundTrip(q)
	t.reach.note(a, err)
	return a, err
}

// WrappedRoundTripper returns the wrapped transport, so that client-go can close its idle
// connections.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }
