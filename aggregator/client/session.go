package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// SessionConfig describes a publisher's lasting presence.
type SessionConfig struct {
	// Snapshot returns a fragment as the publisher wants it now, with every
	// change that it has passed to Put or Patch before; the session calls it
	// when a resync needs the whole content. It runs on the session's own
	// goroutine: it must not call the session, nor wait for a lock that is
	// held across a call of Put or Patch. The result is not changed, and must
	// not be changed by the publisher until the update is acknowledged.
	//
	// Nil means that the session keeps each fragment that Put was given, and
	// that Patch can not be used. A nil result means that there is none.
	Snapshot func(name string) *weftv1.Fragment
	// OnSync is called after every resync that the session made on its own
	// account, with its outcome; nil ignores it. The same rules hold as for
	// Snapshot.
	OnSync func(name string, revision uint64, err error)
}

// Session holds a publisher's fragments at the aggregator. Made by
// Client.Session, it connects in the background, and after a lost connection
// brings the aggregator back in step with a snapshot of each fragment.
//
// Updates of one fragment take effect in the order in which Put, Patch,
// Withdraw or their Start forms were called. Several may be in flight.
//
// After a rejection the aggregator no longer has what the publisher believes it
// has, so the next patch of that fragment travels as a snapshot.
type Session struct {
	client *Client
	cfg    SessionConfig
	cancel context.CancelFunc
	done   chan struct{}
	wake   chan struct{}

	// sending is held by who writes to the stream; it is locked before mu.
	sending sync.Mutex

	mu sync.Mutex
	// stream is that to write to; nil while there is none, or a resync is to be
	// written first.
	stream    publishStream
	fragments map[string]*fragment
	order     []string
	queue     []*update
	inflight  map[uint64]*update
	lastID    uint64
	closed    bool
}

// fragment is what the session knows of one of its fragments.
type fragment struct {
	name string
	// kept is the last Put, where there is no SessionConfig.Snapshot.
	kept *weftv1.Fragment
	// withdrawn is true once Withdraw was called.
	withdrawn bool
	// dirty is true when the aggregator may not have what patches build on.
	dirty bool
	// lost is true while another stream of the publisher owns the fragment.
	lost bool
}

// update is one change on its way. Exactly one of put and patch is set, or
// neither for a withdrawal or a resync.
type update struct {
	id    uint64
	name  string
	put   *weftv1.Fragment
	patch *weftv1.Patch
	// resync asks for the fragment as it is now, whatever that is.
	resync  bool
	waiters []*Pending
}

// Pending is an update that has not been answered yet.
type Pending struct {
	done     chan struct{}
	revision uint64
	err      error
}

// Wait returns the update's outcome. When ctx ends first the update may still
// be committed.
func (p *Pending) Wait(ctx context.Context) (revision uint64, err error) {
	select {
	case <-p.done:
		return p.revision, p.err
	case <-ctx.Done():
		// An answer that is there wins.
		select {
		case <-p.done:
			return p.revision, p.err
		default:
			return 0, ctx.Err()
		}
	}
}

func (p *Pending) answer(revision uint64, err error) {
	p.revision, p.err = revision, err
	close(p.done)
}

// Session starts a session. It never fails for want of an aggregator: updates
// wait until there is one.
func (c *Client) Session(cfg SessionConfig) (*Session, error) {
	ctx, cancel := context.WithCancel(context.Background())
	s := &Session{
		client: c, cfg: cfg, cancel: cancel,
		done: make(chan struct{}), wake: make(chan struct{}, 1),
		fragments: make(map[string]*fragment),
		inflight:  make(map[uint64]*update),
	}
	go s.run(c.outgoing(ctx))
	return s, nil
}

// Put sends a fragment as a snapshot, and returns the revision that carries it.
// The fragment must not be changed until Put returns (for good, where the
// session keeps it).
//
// Possible errors: *RejectedError, ErrPermission, ErrTooLarge, ErrClosed, ctx's.
// A lost connection is not an error: Put waits for the resync.
func (s *Session) Put(ctx context.Context, f *weftv1.Fragment) (revision uint64, err error) {
	return s.StartPut(f).Wait(ctx)
}

// Patch sends a change of a fragment that was Put before, and returns the
// revision that carries it.
//
// Possible errors: those of Put, and ErrNoSnapshot.
func (s *Session) Patch(ctx context.Context, p *weftv1.Patch) (revision uint64, err error) {
	return s.StartPatch(p).Wait(ctx)
}

// Withdraw takes a fragment away.
//
// Possible errors: those of Put.
func (s *Session) Withdraw(ctx context.Context, name string) (revision uint64, err error) {
	return s.StartWithdraw(name).Wait(ctx)
}

// StartPut is Put without the wait.
func (s *Session) StartPut(f *weftv1.Fragment) *Pending {
	return s.start(&update{name: f.GetName(), put: f})
}

// StartPatch is Patch without the wait.
func (s *Session) StartPatch(p *weftv1.Patch) *Pending {
	return s.start(&update{name: p.GetFragment(), patch: p})
}

// StartWithdraw is Withdraw without the wait.
func (s *Session) StartWithdraw(name string) *Pending {
	return s.start(&update{name: name})
}

// start takes an update, and sends it at once where nothing stands before it:
// a patch is mostly the only thing that is on its way, and then need not wait
// for the session's goroutine.
func (s *Session) start(u *update) *Pending {
	p := &Pending{done: make(chan struct{})}
	u.waiters = []*Pending{p}
	direct := u.patch != nil && s.sending.TryLock()
	if direct {
		defer s.sending.Unlock()
	}
	stream := s.enqueue(u, p, direct)
	if stream == nil {
		return p
	}
	req := &weftv1.PublishRequest{Id: u.id, Update: &weftv1.PublishRequest_Patch{Patch: u.patch}}
	// An error is the stream's, and whoever receives from it gets it too: the
	// update is in flight, and answered by the resync.
	_ = stream.Send(req)
	return p
}

// enqueue queues an update. Where direct says that the caller can send it, and
// nothing stands before it, it is registered as in flight instead and the
// stream is returned.
func (s *Session) enqueue(u *update, p *Pending, direct bool) publishStream {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		p.answer(0, ErrClosed)
		return nil
	}
	f := s.fragments[u.name]
	switch {
	case u.patch != nil && s.cfg.Snapshot == nil:
		p.answer(0, fmt.Errorf("patch %s: %w: the session was made without SessionConfig.Snapshot", u.name, ErrNoSnapshot))
		return nil
	case u.patch != nil && (f == nil || f.withdrawn):
		p.answer(0, fmt.Errorf("patch %s: %w: put the fragment first", u.name, ErrNoSnapshot))
		return nil
	case f == nil:
		f = &fragment{name: u.name}
		s.fragments[u.name] = f
		s.order = append(s.order, u.name)
	}
	if u.patch == nil {
		f.withdrawn = u.put == nil
		f.dirty, f.lost = false, false
		if s.cfg.Snapshot == nil {
			f.kept = u.put
		}
	}
	if direct && s.stream != nil && len(s.queue)+len(s.inflight) == 0 && !f.dirty && !tooLarge(u.patch) {
		s.register(u)
		return s.stream
	}
	s.queue = append(s.queue, u)
	s.nudge()
	return nil
}

// nudge wakes the session's goroutine.
func (s *Session) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Close ends the session's stream, and with it the fragments whose lifetime is
// that of the session. Updates that are still waiting get ErrClosed.
func (s *Session) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	<-s.done
	return nil
}

// finish answers everything that still waits.
func (s *Session) finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, u := range s.takeAll() {
		u.answer(0, ErrClosed)
	}
	close(s.done)
}

func (u *update) answer(revision uint64, err error) {
	for _, w := range u.waiters {
		w.answer(revision, err)
	}
	u.waiters = nil
}

// takeAll removes and returns all updates, sent or not, in order.
func (s *Session) takeAll() []*update {
	all := make([]*update, 0, len(s.inflight)+len(s.queue))
	for _, id := range sortedKeys(s.inflight) {
		all = append(all, s.inflight[id])
	}
	clear(s.inflight)
	all = append(all, s.queue...)
	s.queue = nil
	return all
}

// restart puts a resync of every fragment in the place of all updates that were
// on their way: whoever waits for one of those gets the outcome of the resync.
func (s *Session) restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	waiters := make(map[string][]*Pending)
	puts := make(map[string]*weftv1.Fragment)
	for _, u := range s.takeAll() {
		waiters[u.name] = append(waiters[u.name], u.waiters...)
		// A Put that nothing came after says itself what is wanted.
		puts[u.name] = u.put
	}
	for _, name := range s.order {
		f := s.fragments[name]
		if f.lost && len(waiters[name]) == 0 {
			continue
		}
		if f.withdrawn && len(waiters[name]) == 0 {
			continue
		}
		f.dirty = false
		s.queue = append(s.queue, &update{name: name, put: puts[name], resync: true, waiters: waiters[name]})
	}
}

// reconnect delays: the first attempt is at once.
const (
	minBackoff = 50 * time.Millisecond
	maxBackoff = 5 * time.Second
)

// run keeps a stream until the session is closed.
func (s *Session) run(ctx context.Context) {
	defer s.finish()
	log := s.client.cfg.Logger.With("socket", s.client.cfg.Socket)
	delay := minBackoff
	for ctx.Err() == nil {
		s.restart()
		began := time.Now()
		err := s.serve(ctx)
		if ctx.Err() != nil {
			return
		}
		if !errors.Is(err, ErrUnavailable) {
			// Trying again may help later (a limit, a permission), but those
			// who wait must know.
			s.fail(err)
		}
		if errors.Is(err, ErrClosed) {
			return
		}
		if time.Since(began) > maxBackoff {
			delay = minBackoff
		}
		log.Warn("stream to the aggregator ended", "error", err, "retry", delay)
		select {
		case <-ctx.Done():
			return
		case <-time.After(delay):
		}
		delay = min(2*delay, maxBackoff)
	}
}

// fail answers all updates with an error; their fragments need a resync.
func (s *Session) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range s.takeAll() {
		if len(u.waiters) > 0 {
			u.answer(0, fmt.Errorf("publish %s: %w", u.name, err))
		}
	}
}
