package turns

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// restFactor is how many times as long as its last call a caller waits for the next
	// one, which leaves it less than a tenth of a processor.
	restFactor = 10
	// maxRest is the longest such time.
	maxRest = 10 * time.Second
)

// ErrBusy is the refusal of a caller that has a call under way and another one that waits.
var ErrBusy = errors.New("limit exceeded")

// Turns gives callers their turns at something that takes long: one at a time in the
// process. A caller has one call under way and one that waits, and rests between two calls.
type Turns struct {
	// what is what a caller does in its turn, for errors.
	what string
	// taken has a value during a turn.
	taken chan struct{}

	mu sync.Mutex
	// byCaller has the callers that have calls or rest.
	byCaller map[string]*ownTurns
}

// ownTurns are the turns of one caller.
type ownTurns struct {
	// calls counts those that are under way or wait.
	calls int
	// first has a value while a call is under way.
	first chan struct{}
	// next is when the next call may begin.
	next time.Time
}

// New returns turns at what callers do, such as "lists flows".
func New(what string) *Turns {
	return &Turns{what: what, taken: make(chan struct{}, 1), byCaller: make(map[string]*ownTurns)}
}

// Turn is a call and its turn. A call goes through Enter, Rest, Work, Take, End and Leave.
type Turn struct {
	turns *Turns
	own   *ownTurns
	// first and taken are true while the call has the values in the channels.
	first, taken bool
	// began is when the work began, and idle how long of it nothing was done.
	began time.Time
	idle  time.Duration
}

// Enter counts a call of a caller, such as "publisher cni", before anything of it is received.
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

// Rest waits until no other call of the caller is under way, and then until it
// has rested. The request is received after that. The caller calls Leave at the end of the call.
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

// Work notes that the request has arrived: what follows counts as the work of the caller.
func (t *Turn) Work() {
	if t.began.IsZero() {
		t.began = time.Now()
	}
}

// Take waits until no other caller has its turn.
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

// End ends the turn. Idle is how long of it nothing was done.
func (t *Turn) End(idle time.Duration) {
	t.idle += idle
	t.worked()
	if t.taken {
		t.taken = false
		<-t.turns.taken
	}
}

// worked sets when the caller has rested from the work until now.
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
