package publish

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
)

// Delays between two attempts to open a stream (the first one is at once), and
// between two attempts to bring back a fragment that is refused.
const (
	minBackoff = 50 * time.Millisecond
	maxBackoff = time.Second
	resyncWait = 2 * time.Second
)

// session keeps a stream and sends updates on it. Unlike client.Session it
// never makes one update of several that nobody has seen yet: each line is
// judged by itself, and so its answer does not depend on when a connection came.
type session struct {
	client *client.Client
	log    *slog.Logger
	wake   chan struct{}

	mu        sync.Mutex
	fragments map[string]*fragment
	// stale are those of which the stream needs a snapshot before anything else.
	stale map[string]bool
	// waiting are the updates without an answer, in order.
	waiting []*update
	// wires are the updates (*update) and snapshots (*resync) that the stream
	// has not acknowledged, by their number.
	wires map[uint64]any
	last  uint64
}

// update is a line on its way.
type update struct {
	fragment string
	req      *weftv1.PublishRequest
	// wire is its number on the stream, 0 while it is not sent.
	wire uint64
	// sent is true once a stream has had it.
	sent bool
	// done is closed when revision or err is there.
	done     chan struct{}
	revision uint64
	err      error
}

func newSession(c *client.Client, log *slog.Logger) *session {
	return &session{
		client: c, log: log, wake: make(chan struct{}, 1),
		fragments: make(map[string]*fragment), stale: make(map[string]bool), wires: make(map[uint64]any),
	}
}

// start queues an update.
func (s *session) start(req *weftv1.PublishRequest) *update {
	u := &update{fragment: fragmentOf(req), req: req, done: make(chan struct{})}
	s.mu.Lock()
	s.waiting = append(s.waiting, u)
	s.mu.Unlock()
	s.nudge()
	return u
}

func (s *session) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// run keeps a stream until ctx ends.
func (s *session) run(ctx context.Context) {
	delay, told := minBackoff, ""
	for ctx.Err() == nil {
		began := time.Now()
		err := s.serve(ctx)
		if ctx.Err() != nil {
			return
		}
		if !errors.Is(err, client.ErrUnavailable) {
			// It may be better later, but those who wait must know.
			s.fail(err)
		}
		if time.Since(began) > maxBackoff {
			delay, told = minBackoff, ""
		}
		if err.Error() != told {
			// Once for each reason: it can be the same for hours.
			told = err.Error()
			s.log.Warn("no stream to the aggregator: trying again", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(delay):
		}
		delay = min(2*delay, maxBackoff)
	}
}

// serve opens a stream and sends what there is to send, until it breaks.
func (s *session) serve(ctx context.Context) error {
	stream, err := s.client.OpenStream(ctx)
	if err != nil {
		return err
	}
	s.begin()
	broken := make(chan error, 1)
	go s.receive(stream, broken)
	retry := time.NewTicker(resyncWait)
	defer retry.Stop()
	for {
		if err := s.flush(stream); err != nil {
			stream.Close()
			return <-broken
		}
		select {
		case err := <-broken:
			stream.Close()
			return err
		case <-s.wake:
		case <-retry.C:
		}
	}
}

// receive takes acknowledgements until the stream ends.
func (s *session) receive(stream *client.Stream, broken chan<- error) {
	for {
		resp, err := stream.Recv()
		if err != nil {
			broken <- err
			return
		}
		s.acknowledge(resp)
	}
}

// begin forgets the last stream: nothing is sent, and what was acknowledged
// needs a snapshot.
func (s *session) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.wires)
	clear(s.stale)
	for _, u := range s.waiting {
		u.wire = 0
		if u.sent {
			s.fragment(u.fragment)
		}
	}
	for name, f := range s.fragments {
		f.resync, f.retry = nil, time.Time{}
		if !f.lost {
			s.stale[name] = true
		}
	}
}

// fail answers everything that waits.
func (s *session) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range slices.Clone(s.waiting) {
		s.answer(u, 0, err)
	}
}

// flush sends all that can be sent now. An error means that the stream is
// broken.
func (s *session) flush(stream *client.Stream) error {
	for {
		send := s.next(time.Now())
		if send == nil {
			return nil
		}
		if err := send(stream); err != nil {
			return err
		}
	}
}

// next returns what to send next, or nil: first the snapshots that the stream
// needs, then lines in their order. Those of a fragment wait for its snapshot.
func (s *session) next(now time.Time) func(*client.Stream) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.stale {
		f := s.fragment(name)
		if !f.retry.After(now) && !s.inFlight(name) {
			if send := s.startResync(name, f, now); send != nil {
				return send
			}
		}
	}
	held := make(map[string]bool)
	for _, u := range slices.Clone(s.waiting) {
		f := s.fragments[u.fragment]
		if u.wire != 0 || held[u.fragment] {
			continue
		}
		if f != nil && (f.resync != nil || s.stale[u.fragment] && f.refused == nil) {
			// Its snapshot comes first.
			held[u.fragment] = true
			continue
		}
		if err := s.sendable(u, f); err != nil {
			s.answer(u, 0, err)
			continue
		}
		return s.startUpdate(u)
	}
	return nil
}

// inFlight says whether the stream has an update of a fragment that it has not
// acknowledged.
func (s *session) inFlight(name string) bool {
	return slices.ContainsFunc(s.waiting, func(u *update) bool { return u.fragment == name && u.wire != 0 })
}

// sendable says why a patch can not be sent: there is nothing to patch.
func (s *session) sendable(u *update, f *fragment) error {
	if u.req.GetPatch() == nil {
		return nil
	}
	for _, before := range s.waiting {
		if before == u {
			break
		}
		if before.fragment == u.fragment && before.req.GetSnapshot() != nil {
			return nil
		}
	}
	switch {
	case f == nil || !f.there():
		return fmt.Errorf("patch of %s: %w: send a snapshot first", u.fragment, client.ErrNoSnapshot)
	case f.refused != nil:
		return fmt.Errorf("patch of %s: it could not be brought back after a reconnect: send a snapshot: %w", u.fragment, f.refused)
	default:
		return nil
	}
}

// number registers what is sent and returns its number on the stream.
func (s *session) number(what any) uint64 {
	s.last++
	s.wires[s.last] = what
	return s.last
}

// startUpdate returns how a line is sent.
func (s *session) startUpdate(u *update) func(*client.Stream) error {
	u.wire, u.sent = s.number(u), true
	id, req := u.wire, u.req
	return func(stream *client.Stream) (err error) {
		switch r := req.GetUpdate().(type) {
		case *weftv1.PublishRequest_Snapshot:
			err = stream.Put(id, r.Snapshot)
		case *weftv1.PublishRequest_Patch:
			err = stream.Patch(id, r.Patch)
		default:
			err = stream.Withdraw(id, req.GetWithdraw())
		}
		return s.tooLarge(id, err)
	}
}

// tooLarge answers what was not sent as it can not be. Other errors are the
// stream's.
func (s *session) tooLarge(id uint64, err error) error {
	if !errors.Is(err, client.ErrTooLarge) {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse(s.take(id), err)
	return nil
}

// startResync returns how the snapshot of a fragment is sent, or nil where the
// stream needs none. Updates that an earlier stream has had are part of it:
// without them it could undo for a moment what was committed.
func (s *session) startResync(name string, f *fragment, now time.Time) func(*client.Stream) error {
	r := &resync{name: name}
	for _, u := range s.waiting {
		if u.fragment == name && u.sent {
			r.covers = append(r.covers, u)
		}
	}
	if r.after = f.with(r.covers); r.after.err != nil || supersedes(r.covers) {
		// Each is to be judged, and one of them is refused for certain, or
		// would not be seen.
		uncover(r.covers)
		r.covers, r.after = nil, f.kept
	}
	if !r.after.there() && len(r.covers) == 0 || r.after.err != nil {
		delete(s.stale, name)
		f.refused = r.after.err
		s.forget(name)
		return nil
	}
	delete(s.stale, name)
	f.resync = r
	message := r.after.message(now)
	id := s.number(r)
	return func(stream *client.Stream) error {
		if message == nil {
			return s.tooLarge(id, stream.Withdraw(id, name))
		}
		return s.tooLarge(id, stream.Put(id, message))
	}
}

// supersedes says whether one of the updates replaces what others before it did.
func supersedes(updates []*update) bool {
	for i, u := range updates {
		if i > 0 && u.req.GetPatch() == nil {
			return true
		}
	}
	return false
}

// uncover has updates judged one by one from now on.
func uncover(updates []*update) {
	for _, u := range updates {
		u.sent = false
	}
}
