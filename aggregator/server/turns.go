package server

import (
	"context"
	"fmt"
	"sync"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

const (
	// turnRest is how many times as long as its last call a publisher waits for the next
	// one, which leaves it less than a tenth of a processor.
	turnRest = 10
	// maxTurnRest is the longest such time.
	maxTurnRest = 10 * time.Second
)

// callTurns gives publishers their turns at something that takes long: one at a time in the
// process. A publisher has one call under way and one that waits, and rests between two calls.
type callTurns struct {
	// what is what a publisher does in its turn, for errors.
	what string
	// administrators is true if they have turns too.
	administrators bool
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
	// first has a value while a call is under way.
	first chan struct{}
	// next is when the next call may begin.
	next time.Time
}

func newTurns(what string) *callTurns {
	return &callTurns{what: what, administrators: true, taken: make(chan struct{}, 1), byPublisher: make(map[string]*ownTurns)}
}

// newCallTurns returns the turns of the calls that have turns. Administrators plan and read the history
// without: several of their tools may do so at once.
func newCallTurns() map[string]*callTurns {
	plan, list, compare := newTurns("plans"), newTurns("lists revisions"), newTurns("compares revisions")
	plan.administrators, list.administrators, compare.administrators = false, false, false
	return map[string]*callTurns{
		weftv1.Flows_ListFlows_FullMethodName:          newTurns("lists flows"),
		weftv1.Flows_DeleteFlows_FullMethodName:        newTurns("deletes flows"),
		weftv1.Publisher_Plan_FullMethodName:           plan,
		weftv1.History_ListRevisions_FullMethodName:    list,
		weftv1.History_CompareRevisions_FullMethodName: compare,
	}
}

// callTurn is a call and its turn. A call goes through enter, rest, work, take, end and leave.
type callTurn struct {
	turns     *callTurns
	publisher string
	own       *ownTurns
	// first and taken are true while the call has the values in the channels.
	first, taken bool
	// began is when the work began, and idle how long of it nothing was done.
	began time.Time
	idle  time.Duration
}

// enter counts a call, before anything of it is received.
//
// Possible errors: errLimit.
func (t *callTurns) enter(publisher string) (*callTurn, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	for name, p := range t.byPublisher {
		if p.calls == 0 && !now.Before(p.next) {
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
	return &callTurn{turns: t, publisher: publisher, own: own}, nil
}

// rest waits until no other call of the publisher is under way, and then until the publisher
// has rested. The request is received after that. The caller calls leave at the end of the call.
//
// Possible errors: ctx's.
func (t *callTurn) rest(ctx context.Context) error {
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

// work notes that the request has arrived: what follows counts as the work of the publisher.
func (t *callTurn) work() {
	if t.began.IsZero() {
		t.began = time.Now()
	}
}

// take waits until no other publisher has its turn.
//
// Possible errors: ctx's.
func (t *callTurn) take(ctx context.Context) error {
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

// end ends the turn. Idle is how long of it nothing was done.
func (t *callTurn) end(idle time.Duration) {
	t.idle += idle
	t.worked()
	if t.taken {
		t.taken = false
		<-t.turns.taken
	}
}

// worked sets when the publisher has rested from the work until now.
func (t *callTurn) worked() {
	if t.began.IsZero() {
		return
	}
	now := time.Now()
	t.turns.mu.Lock()
	t.own.next = now.Add(min(turnRest*(now.Sub(t.began)-t.idle), maxTurnRest))
	t.turns.mu.Unlock()
	t.began = time.Time{}
}

// leave ends the turn, if it has not ended, and the call.
func (t *callTurn) leave() {
	t.end(0)
	if t.first {
		t.first = false
		<-t.own.first
	}
	t.turns.mu.Lock()
	t.own.calls--
	t.turns.mu.Unlock()
}
