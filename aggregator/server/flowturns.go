package server

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	// turnRest is how many times as long as its last turn a publisher waits for the next
	// one, which leaves it less than a tenth of a processor.
	turnRest = 10
	// maxTurnRest is the longest such time.
	maxTurnRest = 10 * time.Second
)

// flowTurns gives publishers their turns at something that takes long: one at a time in the
// process. A publisher has one call under way and one that waits, and rests between two turns.
type flowTurns struct {
	// what is what a publisher does in its turn, for errors.
	what string
	// taken has a value during a turn.
	taken chan struct{}

	mu sync.Mutex
	// byPublisher has the publishers that have calls or rest.
	byPublisher map[string]*ownTurns
}

// ownTurns are the turns of one publisher.
type ownTurns struct {
	// calls counts those that are under way or wait.
	calls int
	// first has a value while a call is under way, from before it waits for the turn.
	first chan struct{}
	// next is when the next turn may begin. The call that is under way reads and writes it.
	next time.Time
}

func newFlowTurns(what string) *flowTurns {
	return &flowTurns{what: what, taken: make(chan struct{}, 1), byPublisher: make(map[string]*ownTurns)}
}

// flowTurn is the turn of one call.
type flowTurn struct {
	turns     *flowTurns
	publisher string
	own       *ownTurns
	began     time.Time
	ended     bool
}

// begin waits for the turn of a call. The caller calls leave when the call ends, and before it
// end as soon as the turn is over.
//
// Possible errors: errLimit, ctx's.
func (t *flowTurns) begin(ctx context.Context, publisher string) (*flowTurn, error) {
	own, err := t.enter(publisher)
	if err != nil {
		return nil, err
	}
	if err := t.wait(ctx, own); err != nil {
		t.exit(publisher, own)
		return nil, err
	}
	return &flowTurn{turns: t, publisher: publisher, own: own, began: time.Now()}, nil
}

// enter counts a call.
func (t *flowTurns) enter(publisher string) (*ownTurns, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	for name, p := range t.byPublisher {
		if p.calls == 0 && now.After(p.next) {
			delete(t.byPublisher, name)
		}
	}
	own := t.byPublisher[publisher]
	if own == nil {
		own = &ownTurns{first: make(chan struct{}, 1)}
		t.byPublisher[publisher] = own
	}
	if own.calls >= 2 {
		return nil, fmt.Errorf("%w: publisher %s %s already, and one more call waits for that: try again later", errLimit, publisher, t.what)
	}
	own.calls++
	return own, nil
}

// exit takes back what enter counted.
func (t *flowTurns) exit(publisher string, own *ownTurns) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if own.calls--; own.calls == 0 && own.next.IsZero() {
		delete(t.byPublisher, publisher)
	}
}

// wait waits until no other call of the publisher is under way, then until the publisher has
// rested, then until no other publisher has its turn.
func (t *flowTurns) wait(ctx context.Context, own *ownTurns) error {
	select {
	case own.first <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	rest := time.NewTimer(time.Until(own.next))
	defer rest.Stop()
	select {
	case <-rest.C:
	case <-ctx.Done():
		<-own.first
		return ctx.Err()
	}
	select {
	case t.taken <- struct{}{}:
		return nil
	case <-ctx.Done():
		<-own.first
		return ctx.Err()
	}
}

// end ends the turn. Idle is how long of it nothing was done.
func (t *flowTurn) end(idle time.Duration) {
	if t.ended {
		return
	}
	t.ended = true
	now := time.Now()
	t.turns.mu.Lock()
	t.own.next = now.Add(min(turnRest*(now.Sub(t.began)-idle), maxTurnRest))
	t.turns.mu.Unlock()
	<-t.turns.taken
}

// leave ends the turn, if it has not ended, and the call.
func (t *flowTurn) leave() {
	t.end(0)
	<-t.own.first
	t.turns.exit(t.publisher, t.own)
}
