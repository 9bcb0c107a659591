package server

import (
	"context"
	"fmt"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/weft-proxy/weft/aggregator/admission"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

const (
	// maxInFlightBytes is the encoded size of the updates of a stream that may
	// wait for their acknowledgement; while there are more, no further one is
	// taken.
	maxInFlightBytes = 64 << 20
	// maxUnfinished is the encoded size of all parts of snapshots whose last
	// part has not come; one publisher may have as much as one update.
	maxUnfinished = 2 * admission.MaxBytes
)

// unfinished counts the parts of snapshots that are not complete.
type unfinished struct {
	mu    sync.Mutex
	total int
	by    map[string]int
}

func newUnfinished() *unfinished { return &unfinished{by: make(map[string]int)} }

// add counts a part.
//
// Possible errors: errCrowded.
func (u *unfinished) add(publisher string, n int) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.by[publisher]+n > admission.MaxBytes {
		return fmt.Errorf("%w: unfinished snapshots of publisher %s have more than %d bytes: finish one before the next", errCrowded, publisher, admission.MaxBytes)
	}
	if u.total+n > maxUnfinished {
		return fmt.Errorf("%w: unfinished snapshots of all publishers have more than %d bytes: try again later", errCrowded, maxUnfinished)
	}
	u.total += n
	u.by[publisher] += n
	return nil
}

// remove takes back what add counted.
func (u *unfinished) remove(publisher string, n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.total -= n
	if u.by[publisher] -= n; u.by[publisher] == 0 {
		delete(u.by, publisher)
	}
}

// backlog bounds what a stream makes the aggregator hold. Take and complete are
// called by the goroutine that receives, answered by any.
type backlog struct {
	publisher string
	parts     *unfinished
	// building is the size of the parts of a snapshot that is not complete.
	building int
	// last is that of the message taken last, where it completes an update.
	last int

	mu       sync.Mutex
	inFlight int
	// room is signalled when something was answered.
	room chan struct{}
}

func (s *service) newBacklog(publisher string) *backlog {
	return &backlog{publisher: publisher, parts: s.parts, room: make(chan struct{}, 1)}
}

// take accounts for a message. It waits while too much is in flight.
//
// Possible errors: errCrowded, ctx's.
func (b *backlog) take(ctx context.Context, req *weftv1.PublishRequest) error {
	n := proto.Size(req)
	if b.building == 0 {
		if err := b.wait(ctx); err != nil {
			return err
		}
	}
	if !req.GetMore() {
		b.last = n
		return nil
	}
	if err := b.parts.add(b.publisher, n); err != nil {
		return err
	}
	b.building += n
	return nil
}

func (b *backlog) wait(ctx context.Context) error {
	for {
		b.mu.Lock()
		full := b.inFlight >= maxInFlightBytes
		b.mu.Unlock()
		if !full {
			return nil
		}
		select {
		case <-b.room:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// complete notes that an update is in flight, and returns its size for answered.
func (b *backlog) complete() int {
	n := b.building + b.last
	b.close()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.inFlight += n
	return n
}

// answered notes that an update of n bytes has its outcome.
func (b *backlog) answered(n int) {
	b.mu.Lock()
	b.inFlight -= n
	b.mu.Unlock()
	select {
	case b.room <- struct{}{}:
	default:
	}
}

// close forgets the parts of a snapshot that is not complete.
func (b *backlog) close() {
	if b.building > 0 {
		b.parts.remove(b.publisher, b.building)
	}
	b.building, b.last = 0, 0
}
