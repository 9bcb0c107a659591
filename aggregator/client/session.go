package client

import (
	"context"
	"fmt"
	"sync"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// SessionConfig is optional. Without Snapshot, a session keeps the fragments passed to Put, and
// sends the difference from the last one.
//
// The session calls these functions on its own goroutines, without its locks. The functions must
// not wait for the outcome of an update (in Put, Patch, Withdraw or Wait), nor for a lock held
// during such a wait. The Start methods do not wait for these functions.
type SessionConfig struct {
	// Snapshot is for a publisher that keeps and patches the content of fragments; the session then
	// keeps no copy. It returns the fragment with all changes passed to Put or Patch, or nil if the
	// content is unknown. The session does not change the result.
	Snapshot func(name string) *weftv1.Fragment
	// OnSync is called with the outcome of every resync (a snapshot for a new stream, at the
	// aggregator's request, or a retry), before callers waiting for it continue. The error is an
	// error of Put, or ErrNoSnapshot. If the reason for a rejection can go away by itself, the
	// session retries after 250 ms at first, and finally every 30 s.
	OnSync func(name string, revision uint64, err error)
	// OnStream is called with nil for an accepted stream, and with the reason for a lost or refused
	// stream, except at Close. The session always retries.
	OnStream func(err error)
}

// Session holds a publisher's fragments at the aggregator. It connects in the background, and sends
// each fragment again after a lost connection. Updates of a fragment take effect in the order of
// their start. Several may be in flight.
//
// An update answered with a *RejectedError has no effect: the fragment keeps its last committed
// content. (With SessionConfig.Snapshot, the next patch is sent as a snapshot of the publisher's
// content.) After any other error the outcome is unknown, and the session continues to work toward
// the last requested content.
type Session struct {
	client *Client
	cfg    SessionConfig
	cancel context.CancelFunc
	done   chan struct{}
	outbox *outbox

	// held while writing to the stream; locked before the outbox
	sending sync.Mutex
	// nil if the stream's requests may have packed elements; guarded by sending
	text func(*weftv1.PublishRequest) (*weftv1.PublishRequest, error)
}

// Session starts a session. Updates wait until there is an aggregator.
func (c *Client) Session(cfg SessionConfig) *Session {
	ctx, cancel := context.WithCancel(c.ctx)
	s := &Session{client: c, cfg: cfg, cancel: cancel, done: make(chan struct{}), outbox: newOutbox(c.cfg.pace)}
	go s.run(c.outgoing(ctx))
	return s
}

// Put replaces the fragment with f, and returns its revision. It sends only the difference from the
// last Put. Without a difference it returns the revision of the last commit. A time to live begins
// at each Put. The session keeps f (unless there is SessionConfig.Snapshot): f must not be changed
// afterwards.
//
// Possible errors: *RejectedError, ErrPermission, ErrLimit, ErrTooLarge, ErrInvalid, ErrClosed,
// ctx's. A lost connection is not an error: Put waits for the next one.
func (s *Session) Put(ctx context.Context, f *weftv1.Fragment) (revision uint64, err error) {
	return s.StartPut(f).Wait(ctx)
}

// Patch changes a fragment put before. It requires SessionConfig.Snapshot or StartPutContent.
//
// Possible errors: the errors of Put, and ErrNoSnapshot.
func (s *Session) Patch(ctx context.Context, p *weftv1.Patch) (revision uint64, err error) {
	return s.StartPatch(p).Wait(ctx)
}

// Withdraw removes a fragment. It is rejected while another fragment refers to the fragment.
//
// Possible errors: the errors of Put.
func (s *Session) Withdraw(ctx context.Context, name string) (revision uint64, err error) {
	return s.StartWithdraw(name).Wait(ctx)
}

// StartPut is Put without the wait for the outcome. The Start methods may wait for the aggregator
// to read earlier messages.
func (s *Session) StartPut(f *weftv1.Fragment) *Pending {
	if f == nil {
		return newPending().answer(0, fmt.Errorf("put: %w", errNothing))
	}
	f = f.WithExpireTime(time.Now())
	content := Content(fixed{f})
	if s.cfg.Snapshot != nil {
		content = &live{put: f, snapshot: s.cfg.Snapshot, name: f.GetName()}
	}
	return s.start(&update{name: f.GetName(), content: content})
}

// StartPutContent is StartPut for a fragment changed by patches. Each update is judged by itself,
// even if several are sent again as one.
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

var errNothing = fmt.Errorf("%w: there is no fragment", ErrInvalid)

// start sends a patch on the caller's goroutine if no message is waiting.
func (s *Session) start(u *update) *Pending {
	p := newPending()
	u.waiters = []*Pending{p}
	direct := u.patch != nil && s.sending.TryLock()
	if direct {
		defer s.sending.Unlock()
	}
	if stream, m := s.outbox.add(u, direct); m != nil {
		// After an error, the update is in flight, and answered after the next resync.
		_ = s.send(stream, m)
	}
	return p
}

// Close ends the session's stream, and with it the fragments of LIFETIME_SESSION. Unanswered
// updates get ErrClosed. Close waits for the session's goroutines, so the functions of
// SessionConfig must not call it.
func (s *Session) Close() error {
	s.cancel()
	<-s.done
	return nil
}
