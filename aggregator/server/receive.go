package server

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/tap"
)

const (
	// maxReceiving is the size in bytes of all callers' data waiting for handlers. The last
	// reservedReceiving bytes are for system callers (access.Identity.System).
	maxReceiving      = 8 * MaxMessage
	reservedReceiving = 2 * MaxMessage
	// two of the largest messages: a call beside a large snapshot
	maxReceivingPerPublisher = 2 * MaxMessage
	// a flag and the length
	messagePrefixLen = 5
	// the largest HTTP/2 frame that gRPC accepts, in bytes
	maxFrame = 16 << 10
)

// budget counts bytes that publishers hold: unread data, or parts of snapshots.
type budget struct {
	mu          sync.Mutex
	total       int
	byPublisher counts[string]
}

func newBudget() *budget { return &budget{byPublisher: counts[string]{}} }

// add counts n more bytes of a publisher, unless check refuses the sums. A negative n needs no
// check.
func (b *budget) add(publisher string, n int, check func(total, own int) error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n > 0 {
		if err := check(b.total+n, b.byPublisher[publisher]+n); err != nil {
			return err
		}
	}
	b.total += n
	b.byPublisher.add(publisher, n)
	return nil
}

// unread counts the data of a call that its handler has not received: gRPC buffers a message until
// it is complete, and then until the handler receives it, without a limit for several calls
// together. A nil unread counts no data.
type unread struct {
	conn *countedConn
	ctx  context.Context //nolint:containedctx // the call's end is the end of the data
	// gets the error that ends the call
	exceeded chan error

	mu    sync.Mutex
	bytes int
	ended bool
}

type unreadKey struct{}

// unreadFrom returns nil if the call is not from a countedConn.
func unreadFrom(ctx context.Context) *unread {
	u, _ := ctx.Value(unreadKey{}).(*unread)
	return u
}

func (u *unread) limit() <-chan error {
	if u == nil {
		return nil
	}
	return u.exceeded
}

// add counts n more bytes; n may be negative. A call that has ended has no bytes.
func (u *unread) add(n int) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ended {
		return nil
	}
	n = max(n, -u.bytes)
	err := u.conn.budget.add(u.conn.publisher, n, u.conn.mayReceive)
	if err == nil {
		u.bytes += n
	}
	return err
}

func (u *unread) received(n int) {
	if u != nil {
		_ = u.add(-n - messagePrefixLen)
	}
}

func (u *unread) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	_ = u.conn.budget.add(u.conn.publisher, -u.bytes, nil)
	u.bytes, u.ended = 0, true
}

// countedConn reads frames for gRPC, and counts the data of its calls. gRPC has no buffer, so it
// handles the frame read last.
type countedConn struct {
	*limitedConn
	budget    *budget
	publisher string
	// the caller may use the reserved part
	reserved bool

	// copies frames to frame
	in     io.Reader
	framer *http2.Framer
	// the rest of the frame for gRPC
	frame bytes.Buffer
	err   error
	// the client's preface is read
	begun bool
	// the stream of the last HEADERS frame
	last uint32

	mu    sync.Mutex
	calls map[uint32]*unread
}

func newCountedConn(c *limitedConn, budget *budget, publisher string, reserved bool) *countedConn {
	counted := &countedConn{limitedConn: c, budget: budget, publisher: publisher, reserved: reserved, calls: make(map[uint32]*unread)}
	counted.in = io.TeeReader(bufio.NewReaderSize(c, readBuffer), &counted.frame)
	counted.framer = http2.NewFramer(nil, counted.in)
	counted.framer.SetMaxReadFrameSize(maxFrame)
	counted.framer.SetReuseFrames()
	return counted
}

func (c *countedConn) mayReceive(total, own int) error {
	most := maxReceiving - reservedReceiving
	if c.reserved {
		most = maxReceiving
	}
	switch {
	case total > most:
		return fmt.Errorf("%w: messages of all callers that are not complete have more than %d bytes: try again later", errLimit, most)
	case !c.reserved && own > maxReceivingPerPublisher:
		return fmt.Errorf("%w: messages of publisher %s that are not complete have more than %d bytes: send fewer at a time", errLimit, c.publisher, maxReceivingPerPublisher)
	}
	return nil
}

func (c *countedConn) Read(b []byte) (int, error) {
	for c.frame.Len() == 0 {
		if c.err != nil {
			return 0, c.err
		}
		if c.begun {
			c.err = c.next()
		} else {
			_, c.err = io.CopyN(io.Discard, c.in, int64(len(http2.ClientPreface)))
			c.begun = true
		}
	}
	return c.frame.Read(b)
}

// next reads a frame and counts its data. If the data exceed a limit, next waits until the call has
// ended.
// gRPC answers malformed frames.
func (c *countedConn) next() error {
	f, err := c.framer.ReadFrame()
	if errors.As(err, new(http2.StreamError)) {
		return nil
	}
	switch f := f.(type) {
	case *http2.HeadersFrame:
		c.last = f.StreamID
	case *http2.DataFrame:
		c.mu.Lock()
		u := c.calls[f.StreamID]
		c.mu.Unlock()
		if u == nil {
			break
		}
		if err := u.add(len(f.Data())); err != nil {
			select {
			case u.exceeded <- err:
			default:
			}
			<-u.ctx.Done()
		}
	}
	return err
}

// countCall is a tap.ServerInHandle, called at the first frame of a call.
func countCall(ctx context.Context, _ *tap.Info) (context.Context, error) {
	p, _ := peer.FromContext(ctx)
	info, _ := p.AuthInfo.(AuthInfo)
	c, ok := info.conn.(*countedConn)
	if !ok {
		return ctx, nil
	}
	id, u := c.last, &unread{conn: c, ctx: ctx, exceeded: make(chan error, 1)}
	c.mu.Lock()
	c.calls[id] = u
	c.mu.Unlock()
	context.AfterFunc(ctx, func() {
		c.mu.Lock()
		delete(c.calls, id)
		c.mu.Unlock()
		u.end()
	})
	return context.WithValue(ctx, unreadKey{}, u), nil
}
