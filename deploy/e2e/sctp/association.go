package sctp

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"
)

const (
	retransmission = 300 * time.Millisecond
	// linger bounds Close's wait for the peer's acknowledgement.
	linger = 2 * time.Second
)

type phase int

const (
	// INIT sent
	waitInitAck phase = iota
	// INIT answered
	waitCookie
	// COOKIE ECHO sent
	waitCookieAck
	established
	ended
)

// SCTPConn is an association.
type SCTPConn struct {
	socket        *socket
	local, remote netip.Addr
	port, peer    uint16
	// done is called once, at the end of the association.
	done func()

	mu    sync.Mutex
	phase phase
	err   error
	// changed is closed and replaced when a field below changes.
	changed chan struct{}
	// tag is in received packets, peerTag in sent packets.
	tag, peerTag uint32
	cookie       []byte
	// next is the sequence number of the next message; the peer has all up to acked.
	next, acked uint32
	stream      uint16
	// All messages up to received came.
	received uint32
	messages [][]byte
	// closing is true after the peer's SHUTDOWN.
	closing      bool
	readDeadline time.Time
}

func newConn(s *socket, local, remote netip.Addr, port, peer uint16, done func()) *SCTPConn {
	c := &SCTPConn{socket: s, local: local, remote: remote, port: port, peer: peer, done: done, changed: make(chan struct{})}
	c.tag, c.next = random(), random()
	c.acked = c.next - 1
	return c
}

func random() uint32 {
	var b [4]byte
	_, _ = rand.Read(b[:])
	return binary.BigEndian.Uint32(b[:]) | 1
}

// send sends a packet with one chunk. Only INIT has no tag.
func (c *SCTPConn) send(k kind, body []byte) {
	flags, tag := byte(0), c.peerTag
	switch k {
	case data:
		flags = whole
	case initiate:
		tag = 0
	}
	c.socket.write(c.local, c.remote, packet{from: c.port, to: c.peer, tag: tag, chunks: []chunk{{kind: k, flags: flags, body: body}}})
}

// The caller holds the lock.
func (c *SCTPConn) notify() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// opened is true for the packet that completes a server's association.
func (c *SCTPConn) handle(local netip.Addr, p packet) (opened bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range p.chunks {
		if k.kind != initiate && p.tag != c.tag {
			return opened
		}
		if c.chunk(k, local) {
			opened = true
		}
	}
	return opened
}

// The caller holds the lock.
func (c *SCTPConn) chunk(k chunk, local netip.Addr) (opened bool) {
	switch k.kind {
	case initiate:
		if c.phase != waitCookie {
			return false
		}
		tag, sequence, _, ok := parseInit(k.body)
		if !ok {
			return false
		}
		c.peerTag, c.received = tag, sequence-1
		if c.cookie == nil {
			c.cookie = binary.BigEndian.AppendUint32(nil, random())
		}
		c.send(initiateAck, initBody(c.tag, c.next, c.cookie))
	case initiateAck:
		tag, sequence, cookie, ok := parseInit(k.body)
		if c.phase != waitInitAck || !ok {
			return false
		}
		c.phase, c.local, c.peerTag, c.received, c.cookie = waitCookieAck, local, tag, sequence-1, cookie
		c.send(cookieEcho, c.cookie)
	case cookieEcho:
		if !bytes.Equal(k.body, c.cookie) || c.phase != waitCookie && c.phase != established {
			return false
		}
		opened = c.phase == waitCookie
		c.phase = established
		c.send(cookieAck, nil)
	case cookieAck:
		if c.phase == waitCookieAck {
			c.phase = established
		}
	case data:
		c.message(k)
	case selectiveAck, shutdown:
		if len(k.body) >= 4 {
			if n := binary.BigEndian.Uint32(k.body); int32(n-c.acked) > 0 && int32(c.next-n) > 0 {
				c.acked = n
			}
		}
		c.closing = c.closing || k.kind == shutdown
		c.agree()
	case shutdownAck:
		c.send(shutdownComplete, nil)
		c.end(net.ErrClosed)
	case shutdownComplete:
		c.end(net.ErrClosed)
	case abort:
		c.end(syscall.ECONNRESET)
	}
	c.notify()
	return opened
}

// message processes DATA. The caller holds the lock.
func (c *SCTPConn) message(k chunk) {
	if len(k.body) < dataSize || c.phase != established || k.flags&whole != whole {
		return
	}
	if binary.BigEndian.Uint32(k.body) == c.received+1 {
		c.received++
		c.messages = append(c.messages, k.body[dataSize:])
	}
	c.send(selectiveAck, ackBody(c.received))
}

// agree answers SHUTDOWN after the peer has all messages and the caller has read all. The caller holds
// the lock.
func (c *SCTPConn) agree() {
	if c.closing && c.acked+1 == c.next && len(c.messages) == 0 {
		c.send(shutdownAck, nil)
	}
}

// The caller holds the lock.
func (c *SCTPConn) end(err error) {
	if c.phase != ended {
		c.phase, c.err = ended, err
		c.done()
	}
}

// until repeats a chunk until the condition holds, and returns the error of an ended association. A
// zero deadline is unlimited.
func (c *SCTPConn) until(deadline time.Time, send func(), condition func() bool) error {
	tick := time.NewTicker(retransmission)
	defer tick.Stop()
	var expired <-chan time.Time
	if !deadline.IsZero() {
		timer := time.NewTimer(time.Until(deadline))
		defer timer.Stop()
		expired = timer.C
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for again := true; ; {
		if condition() {
			return nil
		}
		if c.phase == ended {
			return c.err
		}
		if again && send != nil {
			send()
		}
		changed := c.changed
		c.mu.Unlock()
		again = false
		var err error
		select {
		case <-changed:
		case <-tick.C:
			again = true
		case <-expired:
			err = os.ErrDeadlineExceeded
		}
		c.mu.Lock()
		if err != nil && !condition() {
			return err
		}
	}
}

// connect returns when the association is established.
func (c *SCTPConn) connect() error {
	first := c.next
	return c.until(time.Time{}, func() {
		if c.phase == waitInitAck {
			c.send(initiate, initBody(c.tag, first, nil))
		} else {
			c.send(cookieEcho, c.cookie)
		}
	}, func() bool { return c.phase == established })
}
