package aggregator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/weft-proxy/weft/aggregator/admission"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/status"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/set"
)

// Session is one Publish stream of a publisher.
//
// A fragment belongs to the stream that sent its last snapshot. Patches of a former owner are refused with
// REASON_TAKEN_OVER.
type Session struct {
	a *Aggregator
	// id is unique in this process and not 0.
	id     uint64
	stream *status.Session
	alive  Alive
	done   <-chan struct{}

	// declared assumes that all updates until now are committed; the writer checks the declarations used by
	// patches. Only the pushing goroutine uses it.
	declared declarations
	// left has the fragments found gone by the writer since the last push; true means expired.
	leftMu sync.Mutex
	left   map[string]bool
	// serial counts queued updates.
	serial uint64

	// broken has the serial of the last refused update that changed a fragment's declarations: later
	// patches were compiled against them. The writer owns broken, ended and expired.
	broken map[string]uint64
	ended  bool
	// expired has the fragments expired since their last snapshot.
	expired map[string]bool
	// tooLarge is why the pushed message has lost its content.
	tooLarge   error
	building   *admission.Builder
	buildingID uint64

	closed sync.Once
}

// Session begins a session of an authenticated publisher, also during the start. pid and uid are only
// reported.
//
// Possible errors: ErrInvalidName, ErrStandby, ErrStopped.
func (a *Aggregator) Session(publisher string, pid int32, uid uint32) (*Session, error) {
	if err := admission.CheckIdentity("publisher", publisher); err != nil {
		return nil, err
	}
	if err := a.Healthy(); err != nil {
		return nil, err
	}
	a.metrics.sessions.Inc()
	a.hub.Publish(presence(publisher, pid, true))
	s := &Session{
		a: a, id: a.sessions.Add(1), stream: &status.Session{Publisher: publisher, PID: pid, UID: uid},
		declared: make(declarations), broken: make(map[string]uint64), expired: make(map[string]bool),
	}
	a.roster.Join(s.stream)
	return s, nil
}

func presence(publisher string, pid int32, connected bool) *weftv1.WatchResponse {
	return &weftv1.WatchResponse{Event: &weftv1.WatchResponse_Presence{Presence: &weftv1.Presence{Publisher: publisher, Connected: connected, Pid: pid}}}
}

// Close queues the withdrawal of fragments with the session's lifetime and does not wait. It may be called
// again.
func (s *Session) Close() {
	s.closed.Do(func() {
		s.a.metrics.sessions.Dec()
		s.a.roster.Leave(s.stream)
		s.a.hub.Publish(presence(s.stream.Publisher, s.stream.PID, false))
		if s.building != nil {
			s.building.Wait()
		}
		if s.serial > 0 {
			update := &desired.Update{Fragment: desired.Key{Publisher: s.stream.Publisher}}
			s.a.queue.Put(&submission{update: update, session: s, ends: true, result: make(chan Result, 1)})
		}
	})
}

// Push accepts one message of the stream. The channel gets the Result of the update, and is nil if more
// parts of a snapshot are to come. An error ends the stream.
//
// Possible errors: ErrProtocol, ErrStandby, ErrStopped, ErrGone (the stream ended during the start).
func (s *Session) Push(req *weftv1.PublishRequest) (<-chan Result, error) {
	if err := s.a.admitting(s.done); err != nil {
		return nil, err
	}
	s.forget()
	if s.building != nil {
		if _, ok := req.GetUpdate().(*weftv1.PublishRequest_Snapshot); !ok || req.GetId() != s.buildingID {
			return nil, fmt.Errorf("%w: update %d begins before the last part of snapshot %d", ErrProtocol, req.GetId(), s.buildingID)
		}
	}
	switch u := req.GetUpdate().(type) {
	case *weftv1.PublishRequest_Snapshot:
		return s.pushSnapshot(req.GetId(), u.Snapshot, req.GetMore())
	case *weftv1.PublishRequest_Patch:
		return s.pushPatch(u.Patch)
	case *weftv1.PublishRequest_Withdraw:
		return s.pushWithdraw(u.Withdraw)
	default:
		return nil, fmt.Errorf("%w: update %d has neither snapshot, patch nor withdraw", ErrProtocol, req.GetId())
	}
}

// PushTooLarge is Push, but rejects the update if err, an error of admission.Size, is not nil: then the
// message lacks its content.
func (s *Session) PushTooLarge(req *weftv1.PublishRequest, err error) (<-chan Result, error) {
	s.tooLarge = err
	defer func() { s.tooLarge = nil }()
	return s.Push(req)
}

func (s *Session) key(name string) (desired.Key, error) {
	return desired.Key{Publisher: s.stream.Publisher, Name: name}, admission.CheckIdentity("fragment", name)
}

func (s *Session) rejected(err error) <-chan Result {
	c := make(chan Result, 1)
	c <- Result{Err: s.a.rejected(err)}
	return c
}

func invalidName(key desired.Key, err error) error {
	key.Name = admission.Clip(key.Name)
	return admission.Reject(key, weftv1.Violation_REASON_INVALID, nil, "%v", err)
}

func (s *Session) pushSnapshot(id uint64, f *weftv1.Fragment, more bool) (<-chan Result, error) {
	adm := s.building
	if adm == nil {
		key := desired.Key{Publisher: s.stream.Publisher, Name: f.GetName()}
		adm = admission.NewSnapshot(s.a.admission, key, &scopes{s.a.scope.Load(), s.declared})
	} else if f.GetName() != adm.Key().Name {
		return nil, fmt.Errorf("%w: update %d has parts of two fragments, %s and %s", ErrProtocol, id, adm.Key().Name, admission.Clip(f.GetName()))
	}
	s.add(adm, func() { adm.AddFragment(f) })
	if more {
		s.building, s.buildingID = adm, id
		return nil, nil
	}
	s.building = nil
	return s.submit(adm)
}

func (s *Session) pushPatch(p *weftv1.Patch) (<-chan Result, error) {
	key, err := s.key(p.GetFragment())
	if err != nil {
		return s.rejected(invalidName(key, err)), nil
	}
	own, ok := s.declared[key.Name]
	switch {
	case !ok:
		return s.rejected(snapshotNeeded(key)), nil
	case own.expired:
		return s.rejected(hasExpired(key)), nil
	}
	adm := admission.NewPatch(s.a.admission, key, own.Declared, &scopes{s.a.scope.Load(), s.declared})
	s.add(adm, func() { adm.AddPatch(p) })
	return s.submit(adm)
}

func (s *Session) add(adm *admission.Builder, message func()) {
	if s.tooLarge != nil {
		adm.RejectSize(s.tooLarge)
		return
	}
	message()
}

func hasExpired(key desired.Key) error {
	return admission.Reject(key, weftv1.Violation_REASON_EXPIRED, nil, "the fragment has expired: send a snapshot")
}

func snapshotNeeded(key desired.Key) error {
	return admission.Reject(key, weftv1.Violation_REASON_SNAPSHOT_NEEDED, nil, "patches need a snapshot that was sent on the same stream: send one")
}

func (s *Session) pushWithdraw(name string) (<-chan Result, error) {
	key, err := s.key(name)
	if err != nil {
		return s.rejected(invalidName(key, err)), nil
	}
	delete(s.declared, name)
	return s.enqueue(&submission{update: &desired.Update{Fragment: key, Snapshot: true}, session: s})
}

func (s *Session) submit(adm *admission.Builder) (<-chan Result, error) {
	u, err := adm.Finish()
	if err != nil {
		return s.rejected(err), nil
	}
	name := adm.Key().Name
	d := s.declared[name]
	if d == nil && len(s.declared) >= admission.MaxFragments {
		return s.rejected(admission.Reject(adm.Key(), weftv1.Violation_REASON_LIMIT, nil, "the stream has sent %d fragments, and no more are taken: withdraw some", admission.MaxFragments)), nil
	}
	if d == nil {
		d = &declaration{}
		s.declared[name] = d
	}
	var changed bool
	d.Declared, changed = adm.Declared()
	d.expired = false
	d.pending.Add(1)
	return s.enqueue(&submission{update: u, admitted: adm, session: s, declares: changed, declaration: d})
}

func (s *Session) enqueue(sub *submission) (<-chan Result, error) {
	s.serial++
	sub.update.Session, sub.update.Serial, sub.alive = s.id, s.serial, s.alive
	sub.result = make(chan Result, 1)
	s.stream.Pending.Add(1)
	if !s.a.queue.Put(sub) {
		return nil, ErrStopped
	}
	return sub.result, nil
}

// Any goroutine may call gone.
func (s *Session) gone(name string, expired bool) {
	s.leftMu.Lock()
	defer s.leftMu.Unlock()
	if s.left == nil {
		s.left = make(map[string]bool)
	}
	s.left[name] = s.left[name] || expired
}

// forget drops the declarations of refused or withdrawn fragments. Otherwise a stream could fill the memory
// with uncounted fragments.
func (s *Session) forget() {
	s.leftMu.Lock()
	left := s.left
	s.left = nil
	s.leftMu.Unlock()
	for name, expired := range left {
		d := s.declared[name]
		switch {
		case d == nil || s.a.statuses.Get(desired.Key{Publisher: s.stream.Publisher, Name: name}) != nil:
		case d.pending.Load() > 0:
			s.gone(name, expired)
		case expired || d.expired:
			d.Declared, d.expired = nil, true
		default:
			delete(s.declared, name)
		}
	}
}

type declarations map[string]*declaration

type declaration struct {
	admission.Declared
	pending atomic.Int32
	expired bool
}

// Set takes any fragment's declaration, because all fragments agree on the declaration of a set.
func (l declarations) Set(table nft.TableID, name string) (*set.Set, bool) {
	for _, f := range l {
		if d, ok := f.Set(table, name); ok {
			return d, true
		}
	}
	return nil, false
}

type scopes [2]admission.Scope

func (l *scopes) Set(table nft.TableID, name string) (*set.Set, bool) {
	if d, ok := l[0].Set(table, name); ok {
		return d, true
	}
	return l[1].Set(table, name)
}

// Holds returns the number of rules and objects, and of elements, in a publisher's committed fragments.
func (a *Aggregator) Holds(publisher string) (rules, elements int) {
	list, _ := a.statuses.List()
	for _, f := range list {
		if f.GetFragment().GetPublisher() == publisher {
			rules += int(f.GetRules() + f.GetObjects())
			elements += int(f.GetElements()) //nolint:gosec // a count
		}
	}
	return rules, elements
}

// Apply replaces a fragment. It rejects the lifetime of a session.
//
// Possible errors: *RejectedError, ErrInvalidName (the publisher), ErrStandby, ErrStopped, ErrGone, ctx's.
func (a *Aggregator) Apply(ctx context.Context, publisher string, f *weftv1.Fragment) (Result, error) {
	s, err := a.admitSnapshot(ctx, a.admission, publisher, f)
	if err != nil {
		return Result{}, err
	}
	return a.submit(ctx, s)
}

func (a *Aggregator) admitSnapshot(ctx context.Context, cfg admission.Config, publisher string, f *weftv1.Fragment) (*submission, error) {
	key := desired.Key{Publisher: publisher, Name: f.GetName()}
	if err := a.admitting(ctx.Done()); err != nil {
		return nil, err
	}
	if err := admission.CheckIdentity("publisher", publisher); err != nil {
		return nil, err
	}
	adm := admission.NewSnapshot(cfg, key, a.scope.Load())
	if f.GetLifetime() == weftv1.Lifetime_LIFETIME_SESSION {
		adm.Reject(weftv1.Violation_REASON_INVALID, "lifetime session needs a Publish stream: it would end with this call")
	}
	adm.AddFragment(f)
	u, err := adm.Finish()
	if err != nil {
		return nil, a.rejected(err)
	}
	return &submission{update: u, admitted: adm}, nil
}

// Delete withdraws a fragment.
//
// Possible errors: *RejectedError, ErrNotFound, ErrInvalidName, ErrStandby, ErrStopped, ErrGone, ctx's.
func (a *Aggregator) Delete(ctx context.Context, publisher, name string) (Result, error) {
	if err := a.admitting(ctx.Done()); err != nil {
		return Result{}, err
	}
	key := desired.Key{Publisher: publisher, Name: name}
	if err := admission.CheckKey(key); err != nil {
		return Result{}, err
	}
	return a.submit(ctx, &submission{update: &desired.Update{Fragment: key, Snapshot: true}, mustExist: true})
}

func (a *Aggregator) submit(ctx context.Context, s *submission) (Result, error) {
	s.result, s.alive = make(chan Result, 1), aliveIn(ctx)
	if !a.queue.Put(s) {
		return Result{}, ErrStopped
	}
	select {
	case r := <-s.result:
		return r, r.Err
	case <-ctx.Done():
		return Result{}, fmt.Errorf("wait for the commit of %s: %w", s.key(), ctx.Err())
	}
}

// rejected returns err.
func (a *Aggregator) rejected(err error) error {
	if r := (*RejectedError)(nil); errors.As(err, &r) {
		a.tell.report(r)
	}
	return err
}
