package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// publishStream is one connection of a session.
type publishStream = grpc.BidiStreamingClient[weftv1.PublishRequest, weftv1.PublishResponse]

// errEnded is a stream that the aggregator ended without an error.
var errEnded = fmt.Errorf("%w: the aggregator ended the stream", ErrUnavailable)

// serve opens a stream and sends on it whatever is queued, until it breaks. It
// calls opened, and reports up, once the aggregator has accepted the stream.
func (s *Session) serve(ctx context.Context, opened func()) (up bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	stream, err := s.client.api.Publish(ctx, grpc.WaitForReady(true))
	if err != nil {
		cancel()
		return false, s.streamError(err)
	}
	r := receiver{broken: make(chan struct{})}
	go func() {
		defer close(r.broken)
		r.up, r.err = s.receive(stream, opened)
	}()
	// receive has returned before the next stream starts, so an answer can
	// never be taken for one of another stream.
	defer func() {
		s.use(nil, false)
		cancel()
		<-r.broken
		up = r.up
	}()
	s.use(nil, true)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		if next := s.due(time.Now()); !next.IsZero() {
			timer.Reset(time.Until(next))
		}
		if err := s.flush(stream); err != nil {
			// An update that can not be sent is answered, but its first parts
			// are sent: begin anew. Else the reason is to be received.
			if unsendable := (*unsendableError)(nil); errors.As(err, &unsendable) {
				return false, fmt.Errorf("%w: half of %w", ErrUnavailable, err)
			}
			<-r.broken
			return false, r.err
		}
		select {
		case <-r.broken:
			return false, r.err
		case <-s.wake:
		case <-timer.C:
		}
	}
}

// receiver is the goroutine that receives; its results are there once broken is
// closed.
type receiver struct {
	broken chan struct{}
	up     bool
	err    error
}

// flush sends all that is queued, and then lets others send.
func (s *Session) flush(stream publishStream) error {
	s.sending.Lock()
	defer s.sending.Unlock()
	for u := s.next(); u != nil; u = s.next() {
		if err := s.send(stream, u); err != nil {
			return err
		}
	}
	s.use(stream, true)
	return nil
}

// use sets the stream that others may send on, and whether there is one at all.
func (s *Session) use(stream publishStream, online bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stream, s.online = stream, online
}

// streamError is the reason why a stream ended.
func (s *Session) streamError(err error) error {
	switch {
	case s.client.conn.GetState() == connectivity.Shutdown:
		// The connection was closed under the stream: Client.Close.
		return ErrClosed
	case errors.Is(err, io.EOF):
		return errEnded
	case status.Code(err) == codes.Canceled:
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	default:
		return fromStatus("", err)
	}
}

// next takes the first update of the queue, gives it a number and registers it
// as in flight.
func (s *Session) next() *update {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		return nil
	}
	u := s.queue[0]
	s.queue = slices.Delete(s.queue, 0, 1)
	if s.fragments[u.name].dirty && u.patch != nil {
		// Everything that follows builds on the snapshot.
		u.patch, u.resync = nil, true
	}
	s.register(u)
	return u
}

// register numbers an update and notes it as in flight.
func (s *Session) register(u *update) {
	s.lastID++
	u.id = s.lastID
	s.inflight[u.id] = u
	if f := s.fragments[u.name]; u.patch == nil {
		f.snapshot, f.dirty, f.lost, f.retry = u.id, false, nil, time.Time{}
	}
}

// send writes one update. An error means that the stream is broken, or that it
// has half of an update that can not be sent; one of which nothing can be sent
// is answered instead.
func (s *Session) send(stream publishStream, u *update) error {
	if u.patch != nil {
		err := s.transmit(stream, &weftv1.PublishRequest{Id: u.id, Update: &weftv1.PublishRequest_Patch{Patch: u.patch}})
		unsendable := (*unsendableError)(nil)
		switch {
		case !errors.As(err, &unsendable):
			return err
		case !errors.Is(err, ErrTooLarge):
			s.drop(u, err)
			return nil
		}
		// A patch is one message; a snapshot of the same outcome is not.
		s.whole(u)
	}
	f, err := s.content(u)
	if err != nil {
		s.drop(u, fmt.Errorf("publish %s: %w", u.name, err))
		return nil
	}
	if f == nil {
		err := s.transmit(stream, &weftv1.PublishRequest{Id: u.id, Update: &weftv1.PublishRequest_Withdraw{Withdraw: u.name}})
		if unsendable := (*unsendableError)(nil); errors.As(err, &unsendable) {
			s.drop(u, err)
			return nil
		}
		return err
	}
	first := true
	for part := range split(f, u.id) {
		err := s.transmit(stream, part)
		if unsendable := (*unsendableError)(nil); errors.As(err, &unsendable) {
			err = fmt.Errorf("publish %s: %w", u.name, err)
			s.drop(u, err)
			if first {
				return nil
			}
		}
		if err != nil {
			return err
		}
		first = false
	}
	return nil
}

// unsendableError is a message that can not be encoded, or is too large. It
// never reached the stream, which goes on.
type unsendableError struct{ err error }

func (e *unsendableError) Error() string { return e.err.Error() }
func (e *unsendableError) Unwrap() error { return e.err }

// transmit sends one message. It encodes it first: where gRPC finds out while
// sending that it can not, it ends the stream.
//
// Possible errors: *unsendableError (ErrTooLarge, ErrInvalid), the stream's.
func (s *Session) transmit(stream publishStream, req *weftv1.PublishRequest) error {
	if n := proto.Size(req); n > MaxMessage {
		return &unsendableError{fmt.Errorf("%w: %d bytes that can not be divided, of at most %d: make several fragments of it, or several chains", ErrTooLarge, n, MaxMessage)}
	}
	var m grpc.PreparedMsg
	if err := m.Encode(stream, req); err != nil {
		return &unsendableError{fmt.Errorf("%w: %s", ErrInvalid, status.Convert(err).Message())}
	}
	return stream.SendMsg(&m)
}

// whole makes an update that was a patch one of the fragment as a whole.
func (s *Session) whole(u *update) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u.patch, u.resync = nil, true
	f := s.fragments[u.name]
	f.snapshot, f.dirty = u.id, false
}

// requeue takes an update out of those in flight, and makes it one of the
// fragment as a whole. False means that it has been answered meanwhile.
func (s *Session) requeue(u *update) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inflight[u.id] == nil {
		return false
	}
	delete(s.inflight, u.id)
	u.patch, u.resync = nil, true
	s.queue = append(s.queue, u)
	s.nudge()
	return true
}

// content returns the fragment that an update is to bring about, nil for none.
//
// Possible errors: ErrNoSnapshot, ErrInvalid.
func (s *Session) content(u *update) (*weftv1.Fragment, error) {
	s.mu.Lock()
	f := s.fragments[u.name]
	kept, withdrawn, leaving := f.kept, f.withdrawn, f.leaving
	s.mu.Unlock()
	c := u.put
	switch {
	case c != nil:
	case withdrawn || !u.resync:
		return nil, nil
	case s.cfg.Snapshot == nil:
		c = kept
	default:
		c = s.cfg.Snapshot(u.name)
	}
	switch {
	case c == nil && leaving:
		// It was to go all the time.
		return nil, nil
	case c == nil:
		return nil, ErrNoSnapshot
	case c.GetName() != u.name:
		return nil, fmt.Errorf("%w: the snapshot is of fragment %q", ErrInvalid, c.GetName())
	}
	if s.cfg.Snapshot == nil {
		s.mu.Lock()
		u.content = c
		s.mu.Unlock()
	}
	return c, nil
}

// drop answers an update that can not be sent.
func (s *Session) drop(u *update, err error) {
	s.mu.Lock()
	if s.inflight[u.id] == nil {
		s.mu.Unlock()
		return
	}
	delete(s.inflight, u.id)
	if f := s.fragments[u.name]; errors.Is(err, ErrNoSnapshot) {
		f.dirty = true
	} else if f.unsendable(u, s.cfg.Snapshot == nil) {
		s.queue = append(s.queue, &update{name: u.name, resync: true, wish: f.wish})
	}
	s.forget(u.name)
	s.mu.Unlock()
	s.outcome(u, 0, err)
}

// forget drops a fragment of which there is nothing and nothing on its way.
func (s *Session) forget(name string) {
	if f := s.fragments[name]; !f.void() || s.queued(name) != nil {
		return
	}
	for _, u := range s.inflight {
		if u.name == name {
			return
		}
	}
	delete(s.fragments, name)
	s.order = slices.DeleteFunc(s.order, func(n string) bool { return n == name })
}

// outcome answers those who wait for an update. OnSync has returned before they
// go on.
func (s *Session) outcome(u *update, revision uint64, err error) {
	if u.resync && s.cfg.OnSync != nil {
		s.cfg.OnSync(u.name, revision, err)
	}
	u.answer(revision, err)
}

// receive hands out acknowledgements until the stream ends. It calls opened, and
// reports up, once the aggregator has accepted the stream.
func (s *Session) receive(stream publishStream, opened func()) (up bool, _ error) {
	// Without a header there is a status to receive.
	if header, err := stream.Header(); err == nil && header != nil {
		up = true
		opened()
	}
	for {
		resp, err := stream.Recv()
		if err != nil {
			return up, s.streamError(err)
		}
		s.acknowledge(resp)
	}
}

// acknowledge takes the answer to an update.
func (s *Session) acknowledge(resp *weftv1.PublishResponse) {
	s.mu.Lock()
	u := s.inflight[resp.GetId()]
	if u == nil {
		s.mu.Unlock()
		return
	}
	delete(s.inflight, u.id)
	f := s.fragments[u.name]
	r := resp.GetRejected()
	if r == nil {
		f.accepted(u)
		s.forget(u.name)
		s.mu.Unlock()
		s.outcome(u, resp.GetCommitted().GetRevision(), nil)
		return
	}
	rejected := &RejectedError{Fragment: u.name, Violations: r.GetViolations()}
	switch {
	case u.patch != nil && rejected.Has(weftv1.Reason_REASON_SNAPSHOT_NEEDED) && f.lost == nil:
		s.resync(u)
		s.mu.Unlock()
		return
	case u.patch != nil && rejected.Has(weftv1.Reason_REASON_SNAPSHOT_NEEDED):
		// A snapshot would take the fragment back from the other stream.
		rejected = f.lost
	case f.refused(u, rejected, s.cfg.Snapshot == nil, s.client.cfg.pace):
		s.queue = append(s.queue, &update{name: u.name, resync: true, wish: f.wish})
	}
	s.forget(u.name)
	s.mu.Unlock()
	s.nudge()
	s.outcome(u, 0, rejected)
}

// resync answers an update by the outcome of a snapshot, as the aggregator asked
// for one: by one that is already on its way, as that has the update's change
// too, or by a new one ahead of what is queued.
func (s *Session) resync(u *update) {
	for _, v := range s.inflight {
		if v.name == u.name && v.resync {
			v.waiters = append(v.waiters, u.waiters...)
			return
		}
	}
	for _, v := range s.queue {
		if v.name == u.name && v.resync {
			v.waiters = append(v.waiters, u.waiters...)
			return
		}
	}
	u.patch, u.resync = nil, true
	s.queue = slices.Insert(s.queue, 0, u)
	s.nudge()
}

func sortedKeys[V any](m map[uint64]V) []uint64 { return slices.Sorted(maps.Keys(m)) }
