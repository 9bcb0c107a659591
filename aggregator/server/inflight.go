package server

import (
	"context"
	"fmt"

	"golang.org/x/sync/semaphore"

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

// inFlight limits the memory of a stream's updates. The goroutine that receives calls receive and
// close; any goroutine may call acknowledged.
type inFlight struct {
	publisher string
	access    *access.Control
	// the parts of all incomplete snapshots
	partial *budget
	// bytes of this stream's parts
	parts int
	room  *semaphore.Weighted
}

func newInFlight(c caller, partial *budget) *inFlight {
	return &inFlight{publisher: c.Publisher, access: c.access, partial: partial, room: semaphore.NewWeighted(maxInFlightBytes)}
}

// receive counts a message of n bytes; more means a part of a snapshot. It returns the size of a
// complete update for acknowledged, and blocks while too much is in flight.
func (f *inFlight) receive(ctx context.Context, n int, more bool) (size int, err error) {
	if more {
		if err := f.partial.add(f.publisher, n, f.mayKeep); err != nil {
			return 0, err
		}
		f.parts += n
		return 0, nil
	}
	size = min(f.parts+n, maxInFlightBytes)
	f.close()
	return size, f.room.Acquire(ctx, int64(size))
}

// mayKeep is called with the lock of partial.
func (f *inFlight) mayKeep(total, own int) error {
	publishers := len(f.partial.byPublisher)
	if f.partial.byPublisher[f.publisher] == 0 {
		publishers++
	}
	switch most := admission.MaxEncoded(f.access.Publisher(f.publisher)); {
	case own > most:
		return fmt.Errorf("%w: unfinished snapshots of publisher %s have more than %d bytes: finish one before the next", errLimit, f.publisher, most)
	case total > maxPartialBytes && own > maxPartialBytes/publishers:
		return fmt.Errorf("%w: unfinished snapshots of all publishers have more than %d bytes: try again later", errLimit, maxPartialBytes)
	}
	return nil
}

func (f *inFlight) acknowledged(size int) { f.room.Release(int64(size)) }

func (f *inFlight) close() {
	_ = f.partial.add(f.publisher, -f.parts, nil)
	f.parts = 0
}
