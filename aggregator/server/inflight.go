package server

import (
	"context"
	"fmt"
	"sync"

	"github.com/weft-proxy/weft/aggregator/access"
	"github.com/weft-proxy/weft/aggregator/admission"
)

const (
	// bytes of a stream's updates waiting for acknowledgement; at this size the stream is not read
	maxInFlightBytes = 64 << 20
	// maxPartialBytes is the encoded size of the parts of all incomplete snapshots. Beyond it, a
	// publisher still gets an equal share among the publishers with parts.
	maxPartialBytes = 2 * admission.MaxBytes
)

type partialSnapshots struct {
	access *access.Control

	mu          sync.Mutex
	total       int
	byPublisher counts[string]
}

func (s *partialSnapshots) add(publisher string, n int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	has, most := s.byPublisher[publisher]+n, admission.MaxEncoded(s.access.Publisher(publisher))
	if has > most {
		return fmt.Errorf("%w: unfinished snapshots of publisher %s have more than %d bytes: finish one before the next", errLimit, publisher, most)
	}
	s.byPublisher.add(publisher, n)
	if s.total+n > maxPartialBytes && has > maxPartialBytes/len(s.byPublisher) {
		s.byPublisher.add(publisher, -n)
		return fmt.Errorf("%w: unfinished snapshots of all publishers have more than %d bytes: try again later", errLimit, maxPartialBytes)
	}
	s.total += n
	return nil
}

func (s *partialSnapshots) remove(publisher string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total -= n
	s.byPublisher.add(publisher, -n)
}

// inFlight limits the memory of a stream's updates. The goroutine that receives calls receive,
// complete and close; any goroutine may call acknowledged.
type inFlight struct {
	publisher string
	partial   *partialSnapshots
	// bytes of an incomplete snapshot's parts, and of the last message
	parts, last int

	mu    sync.Mutex
	bytes int
	// signalled after an acknowledgement
	room chan struct{}
}

func newInFlight(publisher string, partial *partialSnapshots) *inFlight {
	return &inFlight{publisher: publisher, partial: partial, room: make(chan struct{}, 1)}
}

// receive counts a message of n bytes; more means a part of a snapshot. It blocks while too much is
// in flight.
func (f *inFlight) receive(ctx context.Context, n int, more bool) error {
	if f.parts == 0 {
		if err := f.wait(ctx); err != nil {
			return err
		}
	}
	if !more {
		f.last = n
		return nil
	}
	if err := f.partial.add(f.publisher, n); err != nil {
		return err
	}
	f.parts += n
	return nil
}

func (f *inFlight) wait(ctx context.Context) error {
	for {
		f.mu.Lock()
		full := f.bytes >= maxInFlightBytes
		f.mu.Unlock()
		if !full {
			return nil
		}
		select {
		case <-f.room:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// complete returns the update's size for acknowledged.
func (f *inFlight) complete() int {
	n := f.parts + f.last
	f.close()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.bytes += n
	return n
}

func (f *inFlight) acknowledged(n int) {
	f.mu.Lock()
	f.bytes -= n
	f.mu.Unlock()
	select {
	case f.room <- struct{}{}:
	default:
	}
}

func (f *inFlight) close() {
	f.partial.remove(f.publisher, f.parts)
	f.parts, f.last = 0, 0
}
