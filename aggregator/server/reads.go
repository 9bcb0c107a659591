package server

import (
	"context"
	"fmt"
	"iter"
	"sync"

	"golang.org/x/time/rate"
	"google.golang.org/protobuf/proto"
)

// Limits of reading, for each publisher over all its connections. Administrators have none.
const (
	// concurrent calls, with some parts of an answer each
	maxReads = 8
	// bytes a second in the long run: about 80,000 elements, which take a tenth of a processor to
	// convert
	readRate = 2 << 20
	// bytes at once after a quiet time: a table of more than 100,000 elements
	readBurst = 4 << 20
	// bytes added for each call
	readCost = 64 << 10
)

// approximate bytes in a message of a list
const maxPart = 128 << 10

// reads limits publishers' use of the daemon's time and memory for reading. All callers together
// make one part at a time, so reading leaves a processor to commits.
type reads struct {
	making sync.Mutex

	mu sync.Mutex
	// never shrinks: only configured publishers have a share
	byPublisher map[string]*readShare
}

type readShare struct {
	limiter *rate.Limiter
	calls   int
}

type read struct {
	*reads
	ctx context.Context //nolint:containedctx // it is that of the call
	// nil for an administrator
	share *readShare
}

func (s *reads) call(ctx context.Context, f func(*read, caller) error) error {
	r, c := &read{reads: s, ctx: ctx}, callerFrom(ctx)
	defer r.end()
	if !c.Admin {
		if err := r.begin(c.Publisher); err != nil {
			return err
		}
	}
	return f(r, c)
}

func (r *read) begin(publisher string) error {
	r.mu.Lock()
	share := r.byPublisher[publisher]
	if share == nil {
		share = &readShare{limiter: rate.NewLimiter(readRate, readBurst)}
		r.byPublisher[publisher] = share
	}
	if share.calls >= maxReads {
		r.mu.Unlock()
		return fmt.Errorf("%w: publisher %s has %d calls open that read: end one before the next", errLimit, publisher, maxReads)
	}
	share.calls++
	r.mu.Unlock()
	r.share = share
	return r.wait(readCost)
}

func (r *read) end() {
	if r.share != nil {
		r.mu.Lock()
		r.share.calls--
		r.mu.Unlock()
	}
}

func (r *read) wait(n int) error {
	if r.share == nil {
		return r.ctx.Err()
	}
	return r.share.limiter.WaitN(r.ctx, min(n, readBurst))
}

func sendAll[M proto.Message](r *read, parts iter.Seq[M], send func(M) error) error {
	next, stop := iter.Pull(parts)
	defer stop()
	for {
		r.making.Lock()
		part, ok := next()
		r.making.Unlock()
		if !ok {
			return nil
		}
		if err := r.wait(proto.Size(part)); err != nil {
			return err
		}
		if err := send(part); err != nil {
			return err
		}
	}
}

// sendList also sends an empty list.
func sendList[M proto.Message](r *read, list []M, send func(part []M) error) error {
	size, from := 0, 0
	for i, entry := range list {
		if size >= maxPart {
			if err := r.wait(size); err != nil {
				return err
			}
			if err := send(list[from:i]); err != nil {
				return err
			}
			size, from = 0, i
		}
		size += proto.Size(entry)
	}
	if err := r.wait(size); err != nil {
		return err
	}
	return send(list[from:])
}
