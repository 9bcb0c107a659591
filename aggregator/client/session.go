package client

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// SessionConfig is optional: without it, a session keeps the fragments that Put
// is given, and sends what is different from the last one.
//
// The session calls these functions on its own goroutines, and holds none of its
// locks while it does. They must not wait for the outcome of an update, nor for a
// lock whose holder waits for one (in Put, Patch, Withdraw or Wait). The Start
// methods do not wait for them.
type SessionConfig struct {
	// Snapshot is for a publisher that has the content of its fragments at hand,
	// and patches them itself: the session keeps no copy then. It returns the
	// fragment with all changes that the publisher has passed to Put or Patch;
	// the session calls it if the aggregator needs the whole content, and does
	// not change the result. A nil result means that the content is unknown.
	Snapshot func(name string) *weftv1.Fragment
	// OnSync is called with the outcome of every resync: after a lost
	// connection, after the aggregator asked for a snapshot, and each time that
	// a rejected one is tried again. It returns before those who wait for the
	// same outcome go on. The error is one of those of Put, or ErrNoSnapshot. If
	// the reason for a rejection can go away by itself (the violation lies with
	// another fragment, the kernel, a permission or a limit), the session tries
	// again after 250 ms at first, and every 30 s in the end.
	OnSync func(name string, revision uint64, err error)
	// OnStream is called with nil when the aggregator has accepted the stream,
	// and with the reason when it could not be opened, or ended. The session
	// tries again whatever the reason is. OnStream is not called at Close.
	OnStream func(err error)
}

// Session holds a publisher's fragments at the aggregator. It connects in the
// background, and after a lost connection it sends each fragment again.
//
// Updates of one fragment take effect in the order in which they were started.
// Several may be in flight.
//
// An update that is answered with a *RejectedError has not happened: the fragment
// is what was committed last. (With SessionConfig.Snapshot, the publisher's
// content decides what is sent next: the next patch is sent as a snapshot.)
//
// Any other error says nothing about the outcome: the session continues to try to
// bring about what was asked for last.
type Session struct {
	client *Client
	cfg    SessionConfig
	cancel context.CancelFunc
	done   chan struct{}
	wake   chan struct{}

	// sending is held while somebody writes to the stream; it is locked before mu.
	sending sync.Mutex

	mu sync.Mutex
	// stream is the one to write to; nil if there is none, or if a resync must be
	// written first.
	stream publishStream
	// online is true while there is a stream.
	online    bool
	fragments map[string]*fragment
	// behind are the fragments of which the stream needs a snapshot.
	behind []*fragment
	// queue has the updates that this stream does not have, in order.
	queue []*update
	// inflight has what this stream was sent and has not acknowledged, by number.
	inflight map[uint64]*message
	started  uint64
	lastID   uint64
	closed   bool
}

// Session starts a session. Updates wait until there is an aggregator.
func (c *Client) Session(cfg SessionConfig) *Session {
	ctx, cancel := context.WithCancel(c.ctx)
	s := &Session{
		client: c, cfg: cfg, cancel: cancel,
		done: make(chan struct{}), wake: make(chan struct{}, 1),
		fragments: make(map[string]*fragment),
		inflight:  make(map[uint64]*message),
	}
	go s.run(c.outgoing(ctx))
	return s
}

// Put replaces the fragment by f, and returns the revision that carries it. It sends only
// what is different from the last Put. If nothing is, it sends nothing and returns the
// revision of the last commit of the fragment. A time to live begins at each Put: to keep
// the fragment longer, put it again before it expires. The session keeps f (unless there is
// SessionConfig.Snapshot): it must not be changed afterwards.
//
// Possible errors: *RejectedError, ErrPermission, ErrLimit, ErrTooLarge,
// ErrInvalid, ErrClosed, ctx's. A lost connection is not an error: Put waits for
// the next one.
func (s *Session) Put(ctx context.Context, f *weftv1.Fragment) (revision uint64, err error) {
	return s.StartPut(f).Wait(ctx)
}

// Patch sends a change of a fragment that was put before, and returns the
// revision that carries it. It requires SessionConfig.Snapshot or
// StartPutContent.
//
// Possible errors: those of Put, and ErrNoSnapshot.
func (s *Session) Patch(ctx context.Context, p *weftv1.Patch) (revision uint64, err error) {
	return s.StartPatch(p).Wait(ctx)
}

// Withdraw removes a fragment, and returns the revision that does. It is rejected
// while another fragment refers to it.
//
// Possible errors: those of Put.
func (s *Session) Withdraw(ctx context.Context, name string) (revision uint64, err error) {
	return s.StartWithdraw(name).Wait(ctx)
}

// StartPut is Put without the wait for the outcome. The Start methods may wait for
// the aggregator to read what was sent before.
func (s *Session) StartPut(f *weftv1.Fragment) *Pending {
	if f == nil {
		return newPending().answer(0, fmt.Errorf("put: %w", errNothing))
	}
	f = f.WithExpireTime(time.Now())
	return s.start(&update{name: f.GetName(), content: contentFunc(func() *weftv1.Fragment { return f })})
}

// StartPutContent is StartPut for a fragment that is changed by patches; a nil Content
// withdraws it. Each of
// its updates is judged by itself, also if several are sent again as one after a
// lost connection: one that is rejected has no effect on the others.
func (s *Session) StartPutContent(name string, c Content) *Pending {
	return s.start(&update{name: name, content: c})
}

// StartPatch is Patch without the wait.
func (s *Session) StartPatch(p *weftv1.Patch) *Pending {
	if p == nil {
		return newPending().answer(0, fmt.Errorf("patch: %w", errNothing))
	}
	return s.start(&update{name: p.GetFragment(), patch: p})
}

// StartWithdraw is Withdraw without the wait.
func (s *Session) StartWithdraw(name string) *Pending {
	return s.start(&update{name: name})
}

// errNothing is the error of an update without content.
var errNothing = fmt.Errorf("%w: there is no fragment", ErrInvalid)

// start accepts an update. It sends a patch on the caller's goroutine if nothing
// else is to be sent: a patch is mostly the only thing on its way, and need not
// wait for the session's goroutine then.
func (s *Session) start(u *update) *Pending {
	p := newPending()
	u.waiters = []*Pending{p}
	direct := u.patch != nil && s.sending.TryLock()
	if direct {
		defer s.sending.Unlock()
	}
	if stream, m := s.enqueue(u, p, direct); stream != nil {
		// An error of the stream also reaches its receiver: the update is in
		// flight, and answered after the next resync.
		_ = s.send(stream, m)
	}
	return p
}

// enqueue queues an update. If direct is true and nothing comes before it, it is
// registered as in flight instead, and the caller has to send the message.
func (s *Session) enqueue(u *update, p *Pending, direct bool) (publishStream, *message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		p.answer(0, ErrClosed)
		return nil, nil
	}
	f := s.fragments[u.name]
	if u.patch != nil && !f.patchable() {
		p.answer(0, fmt.Errorf("patch of %s: %w: send a snapshot first", u.name, ErrNoSnapshot))
		return nil, nil
	}
	if f == nil {
		f = &fragment{name: u.name, number: s.started}
		s.fragments[u.name] = f
	}
	f.want(u, s.cfg.Snapshot)
	s.started++
	u.number = s.started
	if direct && s.stream != nil && len(s.queue)+len(s.inflight)+len(s.behind) == 0 && f.sendable() {
		return s.stream, s.register(f, &message{updates: []*update{u}, patch: u.patch})
	}
	if last := s.queued(u.name); last != nil && !s.online && f.mode != patched {
		// One update per fragment is enough while nothing is sent.
		last.absorb(u, f.wanted)
		if u.patch == nil {
			f.latest = last
		}
		f.unanswered--
		return nil, nil
	}
	s.queue = append(s.queue, u)
	s.nudge()
	return nil, nil
}

// queued returns the last update of a fragment in the queue, or nil.
func (s *Session) queued(name string) *update {
	for _, u := range slices.Backward(s.queue) {
		if u.name == name {
			return u
		}
	}
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
// LIFETIME_SESSION. Updates without an answer get ErrClosed. Close waits for the session's
// goroutines, so the functions of SessionConfig must not call it.
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
	s.recall()
	for _, u := range s.queue {
		u.answer(0, ErrClosed)
	}
	s.queue = nil
	close(s.done)
}
