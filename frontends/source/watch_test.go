package source

import (
	"context"
	"log/slog"
	"net/http"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestWaits tests what ends a wait between two attempts: its time, the end of its context,
// and the return of the API server, but not an answer of one that was there all along.
func TestWaits(t *testing.T) {
	answer := func(code int) *http.Response { return &http.Response{StatusCode: code, Status: http.StatusText(code)} }
	for name, test := range map[string]struct {
		before, meanwhile func(r *reach, cancel func())
		least, most       time.Duration
	}{
		"time":          {least: time.Hour, most: time.Hour},
		"context":       {meanwhile: func(_ *reach, cancel func()) { cancel() }},
		"answer":        {meanwhile: func(r *reach, _ func()) { r.note(answer(200), nil) }, least: time.Hour, most: time.Hour},
		"other failure": {meanwhile: func(r *reach, _ func()) { r.note(nil, syscall.ECONNREFUSED) }, least: time.Hour, most: time.Hour},
		"still away": {
			before:    func(r *reach, _ func()) { r.note(nil, syscall.ECONNREFUSED) },
			meanwhile: func(r *reach, _ func()) { r.note(answer(503), nil); r.note(nil, context.Canceled) }, least: time.Hour, most: time.Hour,
		},
		"back": {
			before:    func(r *reach, _ func()) { r.note(nil, syscall.ECONNREFUSED) },
			meanwhile: func(r *reach, _ func()) { r.note(answer(403), nil) }, most: retryBack,
		},
		"back from errors": {
			before:    func(r *reach, _ func()) { r.note(answer(500), nil) },
			meanwhile: func(r *reach, _ func()) { r.note(answer(200), nil) }, most: retryBack,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				r, began := newReach("", slog.New(slog.DiscardHandler)), time.Now()
				if test.before != nil {
					test.before(r, cancel)
				}
				wait := waitClock{ctx: ctx, reach: r}.After(time.Hour)
				synctest.Wait()
				if test.meanwhile != nil {
					test.meanwhile(r, cancel)
				}
				<-wait
				if took := time.Since(began); took < test.least || took > test.most {
					t.Errorf("the wait takes %v: want %v to %v", took, test.least, test.most)
				}
			})
		})
	}
}
