package statuspage

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"time"
)

const (
	// share is the part of the time that one asker may use for questions, one in so many, and
	// credit what it may use at once after an idle time.
	share  = 4
	credit = 5 * time.Second
	// leastCost is what a question costs at least: an asker has five a second in the long run.
	leastCost = 50 * time.Millisecond
	// maxAsked is how many questions of one asker are answered or wait.
	maxAsked = 2
)

// turns has questions answered one at a time, and each asker pay for the time that its questions take.
type turns struct {
	now func() time.Time
	// taken has a value while a question is answered.
	taken chan struct{}

	mu sync.Mutex
	// byAsker has those that ask, and those that have not paid.
	byAsker map[string]*account
}

// account is that of one asker.
type account struct {
	asked int
	// first has a value while a question is answered or is the next one of the asker to be answered.
	first chan struct{}
	// paid is when all questions until now are paid.
	paid time.Time
}

func newTurns() *turns {
	return &turns{now: time.Now, taken: make(chan struct{}, 1), byAsker: make(map[string]*account)}
}

// enter counts a question. If the asker has asked too much it returns how long to wait, and no account.
func (t *turns) enter(asker string) (a *account, retry time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	maps.DeleteFunc(t.byAsker, func(_ string, a *account) bool { return a.asked == 0 && !now.Before(a.paid) })
	if a = t.byAsker[asker]; a == nil {
		a = &account{first: make(chan struct{}, 1)}
		t.byAsker[asker] = a
	}
	if most := now.Add(share * credit); a.paid.After(most) {
		return nil, a.paid.Sub(most)
	}
	if a.asked >= maxAsked {
		return nil, time.Second
	}
	a.asked++
	return a, 0
}

// leave ends a question that was answered in a time.
func (t *turns) leave(a *account, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a.asked--
	if now := t.now(); a.paid.Before(now) {
		a.paid = now
	}
	a.paid = a.paid.Add(share * max(took, leastCost))
}

// answer has f called in the turn of an asker, and ends the question.
//
// Possible errors: ctx's.
func (t *turns) answer(ctx context.Context, a *account, f func()) error {
	took := time.Duration(0)
	defer func() { t.leave(a, took) }()
	for _, turn := range []chan struct{}{a.first, t.taken} {
		select {
		case turn <- struct{}{}:
			defer func() { <-turn }()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	began := t.now()
	defer func() { took = t.now().Sub(began) }()
	f()
	return nil
}

// buffered is an answer that is not sent yet: a turn does not last until its asker has read it.
type buffered struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (b *buffered) WriteHeader(status int)         { b.status = status }
func (b *buffered) Write(part []byte) (int, error) { return b.body.Write(part) }

// question answers the questions of each asker in its turn.
func (p *Page) question(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		a, retry := p.turns.enter(p.asker(r))
		if a == nil {
			w.Header().Set("Retry-After", fmt.Sprint(int((retry+time.Second-1)/time.Second)))
			http.Error(w, fmt.Sprintf("your questions took too much time: at most 1/%d is yours: try again in %v", share, retry.Round(time.Second)), http.StatusTooManyRequests)
			return
		}
		b := &buffered{ResponseWriter: w, status: http.StatusOK}
		if p.turns.answer(r.Context(), a, func() { next(b, r) }) == nil {
			w.WriteHeader(b.status)
			// An error means that the reader has gone.
			_, _ = w.Write(b.body.Bytes())
		}
	}
}
