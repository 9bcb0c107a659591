package turns

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	restFactor = 10
	maxRest    = 10 * time.Second
)

// ErrBusy refuses a caller with one call under way and another one waiting.
var ErrBusy = errors.New("limit exceeded")

// Turns grants turns at an operation, one at a time.
type Turns struct {
	what string
	// taken has a value during a turn.
	taken chan struct{}

	mu sync.Mutex
	// byCaller has the callers that have calls or rest.
	byCaller map[string]*ownTurns
}

type ownTurns struct {
	// calls counts calls under way or waiting.
	calls int
	// first has a value while a call is under way.
	first chan struct{}
	// next is the end of the rest.
	next time.Time
}

// New names the operation, such as "lists flows".
func New(what string) *Turns {
	return &Turns{what: what, taken: make(chan struct{}, 1), byCaller: make(map[string]*ownTurns)}
}

// Turn is a call and its turn. A call goes through Enter, Rest, Work, Take, End and Leave.
type Turn struct {
	turns        *Turns
	own          *ownTurns
	first, taken bool
	// began is when the work began, idle the part without activity.
	began time.Time
	idle  time.Duration
}

// Enter counts a call of a caller, such as "publisher cni", before the request is received.
//
// Possible errors: ErrBusy.
func (t *Turns) Enter(caller string) (*Turn, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	for name, p := range t.byCaller {
		if p.calls == 0 && !now.Before(p.next) {
			delete(t.byCaller, name)
		}
	}
	own := t.byCaller[caller]
	if own == nil {
		own = &ownTurns{first: make(chan struct{}, 1)}
		t.byCaller[caller] = own
	}
	if own.calls >= 2 {
		return nil, fmt.Errorf("%w: %s %s already, and one more call waits for that: try again later", ErrBusy, caller, t.what)
	}
	own.calls++
	return &Turn{turns: t, own: own}, nil
}

// Rest waits until the caller's other call has ended and the caller has rested. Receive the request
// afterwards.
//
// Possible errors: ctx's.
func (t *Turn) Rest(ctx context.Context) error {
	select {
	case t.own.first <- struct{}{}:
		t.first = true
	case <-ctx.Done():
		return ctx.Err()
	}
	t.turns.mu.Lock()
	next := t.own.next
	t.turns.mu.Unlock()
	rest := time.NewTimer(time.Until(next))
	defer rest.Stop()
	select {
	case <-rest.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Work marks the arrival of the request: now time counts as the caller's work.
func (t *Turn) Work() {
	if t.began.IsZero() {
		t.began = time.Now()
	}
}

// Take waits until no other call has its turn.
//
// Possible errors: ctx's.
func (t *Turn) Take(ctx context.Context) error {
	waits := time.Now()
	defer func() { t.idle += time.Since(waits) }()
	select {
	case t.turns.taken <- struct{}{}:
		t.taken = true
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// End ends the turn; idle is the part without activity.
func (t *Turn) End(idle time.Duration) {
	t.idle += idle
	t.worked()
	if t.taken {
		t.taken = false
		<-t.turns.taken
	}
}

func (t *Turn) worked() {
	if t.began.IsZero() {
		return
	}
	now := time.Now()
	t.turns.mu.Lock()
	t.own.next = now.Add(min(restFactor*(now.Sub(t.began)-t.idle), maxRest))
	t.turns.mu.Unlock()
	t.began = time.Time{}
}

// Leave ends the turn, if it has not ended, and the call.
func (t *Turn) Leave() {
	t.End(0)
	if t.first {
		t.first = false
		<-t.own.first
	}
	t.turns.mu.Lock()
	t.own.calls--
	t.turns.mu.Unlock()
}
