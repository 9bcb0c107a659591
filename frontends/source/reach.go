package source

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync/atomic"
)

// reach logs when the API server stops answering and when it answers again. The
// reflectors of client-go v0.36 do not: they retry a refused connection silently.
type reach struct {
	next   http.RoundTripper
	server string
	log    *slog.Logger
	lost   atomic.Bool
}

// RoundTrip implements http.RoundTripper.
func (r *reach) RoundTrip(q *http.Request) (*http.Response, error) {
	a, err := r.next.RoundTrip(q)
	switch {
	case err == nil:
		if r.lost.CompareAndSwap(true, false) {
			r.log.Info("the Kubernetes API answers again", "server", r.server)
		}
	case errors.Is(err, context.Canceled):
	case r.lost.CompareAndSwap(false, true):
		r.log.Error("the Kubernetes API does not answer: keeping the last state and retrying", "server", r.server, "error", err)
	}
	return a, err
}

// WrappedRoundTripper returns the wrapped transport, so that client-go can close its idle
// connections.
func (r *reach) WrappedRoundTripper() http.RoundTripper { return r.next }
