package server

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/net/http2"
)

const (
	// maxReceiving is the size in bytes of all callers' partly received messages: eight of the
	// largest. The last reservedReceiving bytes are for root, the daemon's own user and
	// administrators.
	maxReceiving      = 8 * MaxMessage
	reservedReceiving = 2 * MaxMessage
	// maxReceivingPerPublisher is the size for one publisher: two of the largest, so that it can
	// make a call while it sends a large snapshot.
	maxReceivingPerPublisher = 2 * MaxMessage
	// messagePrefixLen is the length of a message's prefix: a flag and the length.
	messagePrefixLen = 5
)

// receiving limits the memory of incomplete messages. gRPC buffers them, and calls interceptors
// only after the last byte.
type receiving struct {
	mu          sync.Mutex
	total       int
	byPublisher counts[string]
}

// add counts n more bytes of a publisher, or fewer if n is negative.
//
// Possible errors: errLimit.
func (r *receiving) add(publisher string, reserved bool, n int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.total += n
	r.byPublisher.add(publisher, n)
	most := maxReceiving - reservedReceiving
	if reserved {
		most = maxReceiving
	}
	switch {
	case n <= 0:
		return nil
	case r.total > most:
		return fmt.Errorf("%w: messages of all callers that are not complete have more than %d bytes: try again later", errLimit, most)
	case !reserved && r.byPublisher[publisher] > maxReceivingPerPublisher:
		return fmt.Errorf("%w: messages of publisher %s that are not complete have more than %d bytes: send fewer at a time", errLimit, publisher, maxReceivingPerPublisher)
	}
	return nil
}

// partialMessage is the data of a stream that has arrived and that the handler may not have read.
type partialMessage struct {
	prefix [messagePrefixLen]byte
	// bytes counts the message and its prefix as arrived; left is missing after the prefix.
	bytes, left int
	// arrived counts the stream with padding. granted is the room that gRPC has granted again
	// (WINDOW_UPDATE) for data read by the handler.
	arrived, granted int
}

// ungranted is a lower bound on the read data for which gRPC grants no room again.
const ungranted = window / 4

// size is the size of the partial message and of complete messages not read by the handler.
func (m *partialMessage) size() int {
	return m.bytes + min(window, max(0, m.arrived-m.granted-m.bytes-ungranted))
}

func (m *partialMessage) feed(b []byte) {
	for len(b) > 0 {
		var n int
		if m.bytes < messagePrefixLen {
			n = copy(m.prefix[m.bytes:], b)
			if m.bytes+n == messagePrefixLen {
				m.left = int(binary.BigEndian.Uint32(m.prefix[1:]))
			}
		} else {
			n = min(m.left, len(b))
			m.left -= n
		}
		m.bytes += n
		b = b[n:]
		if m.bytes >= messagePrefixLen && m.left == 0 {
			m.bytes = 0
		}
	}
}

// countedConn is a connection with counted incomplete messages.
type countedConn struct {
	*limitedConn
	budget    *receiving
	publisher string
	// the caller may use the reserved part
	reserved bool

	mu       sync.Mutex
	in, out  frames
	messages map[uint32]*partialMessage
	// the last stream begun by the client
	last uint32
	// bytes missing from a frame's padding; -1 if the next byte is its length
	padding int
	// bytes missing from the frame's data
	data int
	// the written part of the payload of the server's WINDOW_UPDATE
	grant []byte
	// held is the size of all messages, counted the part reported to the budget.
	held, counted int
	closed        bool
}

func newCountedConn(c *limitedConn, budget *receiving, publisher string, reserved bool) *countedConn {
	return &countedConn{
		limitedConn: c, budget: budget, publisher: publisher, reserved: reserved,
		in: frames{preface: len(http2.ClientPreface)}, messages: make(map[uint32]*partialMessage),
	}
}

// Read implements net.Conn. The connection ends if it exceeds the limits.
func (c *countedConn) Read(b []byte) (int, error) {
	n, err := c.limitedConn.Read(b)
	if n == 0 {
		return n, err
	}
	if lerr := c.received(b[:n]); lerr != nil {
		c.goAway(lerr)
		return 0, errors.Join(lerr, c.Close())
	}
	return n, err
}

// Write implements net.Conn.
func (c *countedConn) Write(b []byte) (int, error) {
	n, err := c.limitedConn.Write(b)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out.feed(b[:n], func(f http2.FrameHeader) {
		if f.Type == http2.FrameRSTStream || f.Type == http2.FrameHeaders && f.Flags.Has(http2.FlagHeadersEndStream) {
			c.drop(f.StreamID)
		}
		c.grant = c.grant[:0]
	}, c.granted)
	return n, errors.Join(err, c.count())
}

// Close implements net.Conn.
func (c *countedConn) Close() error {
	c.mu.Lock()
	c.closed = true
	clear(c.messages)
	c.held = 0
	_ = c.count()
	c.mu.Unlock()
	return c.limitedConn.Close()
}

// received counts data from the client.
//
// Possible errors: errLimit.
func (c *countedConn) received(b []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.in.feed(b, c.begin, c.payload)
	if len(c.messages) > 2*maxStreams {
		return fmt.Errorf("%w: %d calls have begun on one connection: at most %d are allowed", errLimit, len(c.messages), maxStreams)
	}
	return c.count()
}

// begin takes the header of a frame from the client. The lock is held.
func (c *countedConn) begin(f http2.FrameHeader) {
	switch f.Type {
	case http2.FrameHeaders:
		if f.StreamID > c.last {
			c.last = f.StreamID
			if !f.Flags.Has(http2.FlagHeadersEndStream) {
				c.messages[f.StreamID] = &partialMessage{}
			}
		}
	case http2.FrameRSTStream:
		c.drop(f.StreamID)
	case http2.FrameData:
		c.data, c.padding = int(f.Length), 0
		if f.Flags.Has(http2.FlagDataPadded) {
			c.padding = -1
		}
	default:
	}
}

// payload takes a piece of a frame's payload. The lock is held.
func (c *countedConn) payload(f http2.FrameHeader, b []byte) {
	m := c.messages[f.StreamID]
	if f.Type != http2.FrameData || m == nil {
		return
	}
	c.held -= m.size()
	defer func() { c.held += m.size() }()
	m.arrived += len(b)
	if c.padding < 0 {
		c.padding = int(b[0])
		c.data -= 1 + c.padding
		b = b[1:]
	}
	n := max(0, min(c.data, len(b)))
	c.data -= n
	m.feed(b[:n])
}

// granted takes a piece of the payload of a frame from the server. The lock is held.
func (c *countedConn) granted(f http2.FrameHeader, b []byte) {
	m := c.messages[f.StreamID]
	if f.Type != http2.FrameWindowUpdate || f.Length != 4 || m == nil {
		return
	}
	if c.grant = append(c.grant, b...); len(c.grant) == 4 {
		c.held -= m.size()
		m.granted += int(binary.BigEndian.Uint32(c.grant) &^ (1 << 31))
		c.held += m.size()
	}
}

// drop removes a stream that has ended. The lock is held.
func (c *countedConn) drop(stream uint32) {
	if m := c.messages[stream]; m != nil {
		c.held -= m.size()
		delete(c.messages, stream)
	}
}

// count reports changes to the budget. The lock is held.
//
// Possible errors: errLimit.
func (c *countedConn) count() error {
	by := c.held - c.counted
	if by == 0 {
		return nil
	}
	c.counted = c.held
	return c.budget.add(c.publisher, c.reserved, by)
}

// goAway tells the client why its connection ends, unless a frame is half written.
func (c *countedConn) goAway(reason error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.out.between() {
		return
	}
	var b bytes.Buffer
	if err := http2.NewFramer(&b, nil).WriteGoAway(c.last, http2.ErrCodeEnhanceYourCalm, []byte(reason.Error())); err == nil {
		_, _ = c.limitedConn.Write(b.Bytes())
	}
}
