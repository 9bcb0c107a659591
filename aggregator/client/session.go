package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// SessionConfig describes a publisher's lasting presence. Its functions are
// called on the session's own goroutines: they must not call the session, nor
// wait for a lock that is held across a call of Put or Patch.
type SessionConfig struct {
	// Snapshot returns a fragment as the publisher wants it now, with every
	// change that it has passed to Put or Patch before; the session calls it
	// when a resync needs the whole content. The result is not changed, and must
	// not be changed by the publisher until the update is acknowledged.
	//
	// Nil means that the session keeps each fragment that Put was given, and
	// that Patch can not be used. A nil result means that there is none: the
	// resync is not made, and answered with ErrNoSnapshot.
	Snapshot func(name string) *weftv1.Fragment
	// OnSync is called with the outcome of every resync: after a lost
	// connection, when the aggregator asked for a snapshot, and each time that
	// one which was refused is tried again; nil ignores it. Updates whose outcome
	// is that of the resync are answered after it returned. The error is one of
	// those of Put, or ErrNoSnapshot. A refusal that can pass (another fragment,
	// the kernel, a permission or a limit is in the way) is tried again by
	// itself, after 250 ms at first and 30 s at most; after any other the
	// aggregator is out of step until the publisher's next update.
	OnSync func(name string, revision uint64, err error)
	// OnStream is called with nil when the aggregator has accepted the stream,
	// and with the reason when it could not be opened, or ended; nil ignores it.
	// The session goes on trying whatever the reason: ErrUnavailable,
	// ErrPermission, ErrLimit or another. It is not called at Close.
	OnStream func(err error)
}

// Session holds a publisher's fragments at the aggregator. Made by
// Client.Session, it connects in the background, and after a lost connection
// brings the aggregator back in step with a snapshot of each fragment.
//
// Updates of one fragment take effect in the order in which Put, Patch,
// Withdraw or their Start forms were called. Several may be in flight.
//
// An update that is answered with a *RejectedError has not happened. The session
// goes by what was committed last: where it keeps the content itself, a later
// resync sends that; a fragment whose Withdraw was refused is still there, and
// can be patched. Where SessionConfig.Snapshot has the content, it says what is
// wanted, and the next patch of that fragment travels as a snapshot.
//
// Any other error says nothing about the outcome: the session goes on trying to
// bring about what was asked for last.
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
	stream publishStream
	// online is true while there is a stream.
	online    bool
	fragments map[string]*fragment
	order     []string
	queue     []*update
	inflight  map[uint64]*update
	lastID    uint64
	closed    bool
}

// update is one change on its way. Exactly one of put and patch is set, or
// neither for a withdrawal or a resync.
type update struct {
	id    uint64
	name  string
	put   *weftv1.Fragment
	patch *weftv1.Patch
	// resync asks for the fragment as it is now, whatever that is.
	resync bool
	// wish is fragment.wish as of this update.
	wish uint64
	// content is what was sent, where the session keeps that.
	content *weftv1.Fragment
	waiters []*Pending
}

// errNothing is an update without content.
var errNothing = fmt.Errorf("%w: there is no fragment", ErrInvalid)

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
// Possible errors: *RejectedError, ErrPermission, ErrLimit, ErrTooLarge,
// ErrInvalid, ErrClosed, ctx's. A lost connection is not an error: Put waits for
// the resync.
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

// Withdraw takes a fragment away, and returns the revision that does. It is an
// error while something still refers to it.
//
// Possible errors: those of Put.
func (s *Session) Withdraw(ctx context.Context, name string) (revision uint64, err error) {
	return s.StartWithdraw(name).Wait(ctx)
}

// StartPut is Put without the wait for the outcome. The Start forms can wait for
// the aggregator to read what was sent before.
func (s *Session) StartPut(f *weftv1.Fragment) *Pending {
	if f == nil {
		return answered(fmt.Errorf("put: %w", errNothing))
	}
	return s.start(&update{name: f.GetName(), put: f})
}

// StartPatch is Patch without the wait.
func (s *Session) StartPatch(p *weftv1.Patch) *Pending {
	if p == nil {
		return answered(fmt.Errorf("patch: %w", errNothing))
	}
	return s.start(&update{name: p.GetFragment(), patch: p})
}

// StartWithdraw is Withdraw without the wait.
func (s *Session) StartWithdraw(name string) *Pending {
	return s.start(&update{name: name})
}

// answered returns an update that failed before it was one.
func answered(err error) *Pending {
	p := &Pending{done: make(chan struct{})}
	p.answer(0, err)
	return p
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
	stream, req := s.enqueue(u, p, direct)
	if stream == nil {
		return p
	}
	err := s.transmit(stream, req)
	if unsendable := (*unsendableError)(nil); errors.As(err, &unsendable) {
		if errors.Is(err, ErrTooLarge) && s.requeue(u) {
			return p
		}
		s.drop(u, err)
	}
	// Any other error is the stream's, and whoever receives from it gets it
	// too: the update is in flight, and answered by the resync.
	return p
}

// enqueue queues an update. Where direct says that the caller can send it, and
// nothing stands before it, it is registered as in flight instead, and what to send
// on which stream is returned: from then on the update is the session's.
func (s *Session) enqueue(u *update, p *Pending, direct bool) (publishStream, *weftv1.PublishRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		p.answer(0, ErrClosed)
		return nil, nil
	}
	f := s.fragments[u.name]
	if u.patch != nil {
		if err := s.patchable(f); err != nil {
			p.answer(0, fmt.Errorf("patch %s: %w", u.name, err))
			return nil, nil
		}
	}
	if f == nil {
		f = &fragment{name: u.name}
		s.fragments[u.name] = f
		s.order = append(s.order, u.name)
	}
	if u.patch == nil {
		f.want(u.put, s.cfg.Snapshot == nil)
	}
	u.wish = f.wish
	if direct && s.stream != nil && len(s.queue)+len(s.inflight) == 0 && !f.dirty {
		s.register(u)
		return s.stream, &weftv1.PublishRequest{Id: u.id, Update: &weftv1.PublishRequest_Patch{Patch: u.patch}}
	}
	if q := s.queued(u.name); q != nil && !s.online {
		// Nothing of it was sent: one update per fragment is enough.
		q.absorb(u)
		return nil, nil
	}
	s.queue = append(s.queue, u)
	s.nudge()
	return nil, nil
}

// patchable returns why a fragment can not be patched, or nil.
func (s *Session) patchable(f *fragment) error {
	switch {
	case s.cfg.Snapshot == nil:
		return fmt.Errorf("%w: the session was made without SessionConfig.Snapshot", ErrNoSnapshot)
	case f == nil || f.withdrawn:
		return fmt.Errorf("%w: put the fragment first", ErrNoSnapshot)
	default:
		return nil
	}
}

// queued returns the last update of a fragment that was not sent yet, or nil.
func (s *Session) queued(name string) *update {
	for _, u := range slices.Backward(s.queue) {
		if u.name == name {
			return u
		}
	}
	return nil
}

// absorb makes an update that was not sent one that has the effect of the next as
// well.
func (u *update) absorb(next *update) {
	u.waiters = append(u.waiters, next.waiters...)
	u.put, u.patch, u.wish = next.put, nil, next.wish
	// The snapshot of now has the patch; a Put or Withdraw is the whole wish.
	u.resync = u.resync || next.patch != nil
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
