package source

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
)

// reach notes when the API server stops answering and when it answers again. The
// reflectors of client-go v0.36 do not: they retry a refused connection silently, each
// after a wait of its own.
type reach struct {
	log    *slog.Logger
	server string

	mu sync.Mutex
	// back is closed when the server answers again. It is nil while it answers.
	back chan struct{}
}

// again returns a channel that is closed when the server answers again; nil if it has not
// stopped.
func (r *reach) again() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.back
}

// note records the outcome of a request. A server that answers with an internal error
// starts or stops.
func (r *reach) note(a *http.Response, err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	if err == nil && a.StatusCode >= http.StatusInternalServerError {
		err = fmt.Errorf("status %s", a.Status)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil && r.back != nil:
		close(r.back)
		r.back = nil
		r.log.Info("the Kubernetes API answers again", "server", r.server)
	case err != nil && r.back == nil:
		r.back = make(chan struct{})
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
