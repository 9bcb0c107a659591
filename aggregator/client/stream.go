package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// publishStream is one connection of a session.
type publishStream = grpc.BidiStreamingClient[weftv1.PublishRequest, weftv1.PublishResponse]

// serve opens a stream and sends on it whatever is queued, until it breaks.
func (s *Session) serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	stream, err := s.client.api.Publish(ctx, grpc.WaitForReady(true))
	if err != nil {
		cancel()
		return streamError(err)
	}
	broken := make(chan error, 1)
	go s.receive(stream, broken)
	// receive has returned before the next stream starts, so an answer can
	// never be taken for one of another stream.
	defer func() { s.use(nil); cancel(); <-broken }() //nolint:errcheck // it is returned already
	for {
		if err := s.flush(stream); err != nil {
			err = <-broken
			broken <- err
			return err
		}
		select {
		case err := <-broken:
			broken <- err
			return err
		case <-s.wake:
		}
	}
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
	s.use(stream)
	return nil
}

// use sets the stream that others may send on.
func (s *Session) use(stream publishStream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stream = stream
}

// streamError is the reason why a stream ended.
func streamError(err error) error {
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: the aggregator ended the stream", ErrUnavailable)
	}
	if status.Code(err) == codes.Canceled {
		// The connection was closed under the stream: Client.Close.
		return fmt.Errorf("%w: %w", ErrClosed, err)
	}
	return fromStatus("", err)
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
	if f := s.fragments[u.name]; u.patch != nil && f.dirty {
		// Everything that follows builds on the snapshot.
		f.dirty = false
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
}

// send writes one update. An error means that the stream is broken; an update
// that can not be sent is answered instead.
func (s *Session) send(stream publishStream, u *update) error {
	f := u.put
	switch {
	case u.patch != nil:
		req := &weftv1.PublishRequest{Id: u.id, Update: &weftv1.PublishRequest_Patch{Patch: u.patch}}
		if !tooLarge(req) {
			return stream.Send(req)
		}
		// A patch is one message; a snapshot of the same outcome is not.
		f = s.current(u.name)
	case u.resync && u.put == nil:
		f = s.current(u.name)
		if f == nil && !s.withdrawn(u.name) {
			s.drop(u, fmt.Errorf("publish %s: %w", u.name, ErrNoSnapshot))
			return nil
		}
	}
	if f == nil {
		return stream.Send(&weftv1.PublishRequest{Id: u.id, Update: &weftv1.PublishRequest_Withdraw{Withdraw: u.name}})
	}
	if f.GetName() != u.name {
		s.drop(u, fmt.Errorf("publish %s: snapshot is of fragment %q", u.name, f.GetName()))
		return nil
	}
	for part := range split(f, u.id) {
		if err := stream.Send(part); err != nil {
			return err
		}
	}
	return nil
}

// current returns the fragment as the publisher wants it now.
func (s *Session) current(name string) *weftv1.Fragment {
	s.mu.Lock()
	f := s.fragments[name]
	kept, withdrawn := f.kept, f.withdrawn
	s.mu.Unlock()
	if withdrawn {
		return nil
	}
	if s.cfg.Snapshot != nil {
		return s.cfg.Snapshot(name)
	}
	return kept
}

// withdrawn reports whether the publisher withdrew the fragment.
func (s *Session) withdrawn(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fragments[name].withdrawn
}

// drop answers an update that was not sent.
func (s *Session) drop(u *update, err error) {
	s.mu.Lock()
	delete(s.inflight, u.id)
	s.fragments[u.name].dirty = true
	s.mu.Unlock()
	u.answer(0, err)
}

// receive hands out acknowledgements until the stream ends.
func (s *Session) receive(stream publishStream, broken chan<- error) {
	for {
		resp, err := stream.Recv()
		if err != nil {
			broken <- streamError(err)
			return
		}
		s.acknowledge(resp)
	}
}

// acknowledge answers those who wait for an update.
func (s *Session) acknowledge(resp *weftv1.PublishResponse) {
	s.mu.Lock()
	u := s.inflight[resp.GetId()]
	if u == nil {
		s.mu.Unlock()
		return
	}
	delete(s.inflight, u.id)
	f := s.fragments[u.name]
	var err error
	if r := resp.GetRejected(); r != nil {
		rejected := &RejectedError{Fragment: u.name, Violations: r.GetViolations()}
		if u.patch != nil && rejected.Has(weftv1.Reason_REASON_SNAPSHOT_NEEDED) {
			s.resync(u)
			s.mu.Unlock()
			s.nudge()
			return
		}
		f.lost = rejected.Has(weftv1.Reason_REASON_TAKEN_OVER)
		f.dirty = !f.lost
		err = rejected
	}
	revision := resp.GetCommitted().GetRevision()
	own := u.resync && s.cfg.OnSync != nil
	s.mu.Unlock()
	u.answer(revision, err)
	if own {
		s.cfg.OnSync(u.name, revision, err)
	}
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
}

func sortedKeys[V any](m map[uint64]V) []uint64 { return slices.Sorted(maps.Keys(m)) }
