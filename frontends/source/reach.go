package source

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync/atomic"
)

// reach reports when the API server stops to answer and when it answers again.
// The reflectors of client-go v0.36 do not: they retry a refused connection
// without a word.
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
			r.log.Info("the kubernetes API answers again", "server", r.server)
		}
	case errors.Is(err, context.Canceled):
	case r.lost.CompareAndSwap(false, true):
		r.log.Error("the kubernetes API does not answer: keeping the last state, and trying again", "server", r.server, "error", err)
	}
	return a, err
}

// WrappedRoundTripper lets client-go reach the transport that is wrapped, to
// close its idle connections.
func (r *reach) WrappedRoundTripper() http.RoundTripper { return r.next }
