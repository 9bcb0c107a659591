package sctp

import (
	"io"
	"net"
	"time"
)

// Read reads a message, truncated to b. It returns io.EOF after the peer has closed the connection.
func (c *SCTPConn) Read(b []byte) (int, error) {
	c.mu.Lock()
	deadline := c.readDeadline
	c.mu.Unlock()
	n, eof := 0, false
	err := c.until(deadline, nil, func() bool {
		if len(c.messages) > 0 {
			n, c.messages = copy(b, c.messages[0]), c.messages[1:]
			c.agree()
			return true
		}
		eof = c.closing
		return eof
	})
	if eof {
		return 0, io.EOF
	}
	return n, err
}

// Write sends a message, and returns when the peer has acknowledged it.
func (c *SCTPConn) Write(b []byte) (int, error) {
	c.mu.Lock()
	sequence, body := c.next, dataBody(c.next, c.stream, b)
	c.next++
	c.stream++
	c.mu.Unlock()
	err := c.until(time.Time{}, func() { c.send(data, body) }, func() bool { return int32(c.acked-sequence) >= 0 })
	if err != nil {
		return 0, err
	}
	return len(b), nil
}

// Close ends the association, and returns when the peer agrees, or after a timeout.
func (c *SCTPConn) Close() error {
	c.mu.Lock()
	running := c.phase == established
	c.mu.Unlock()
	if running {
		_ = c.until(time.Now().Add(linger), func() {
			body := ackBody(c.received)[:4]
			if c.closing {
				c.send(shutdownAck, nil)
				return
			}
			c.send(shutdown, body)
		}, func() bool { return c.phase == ended })
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end(net.ErrClosed)
	c.notify()
	return nil
}

// LocalAddr returns the address and port of this end.
func (c *SCTPConn) LocalAddr() net.Addr { return address(c.local, c.port) }

// RemoteAddr returns the address and port of the peer.
func (c *SCTPConn) RemoteAddr() net.Addr { return address(c.remote, c.peer) }

// SCTPRemoteAddr returns the address and port of the peer for any identifier.
func (c *SCTPConn) SCTPRemoteAddr(int) (*SCTPAddr, error) { return address(c.remote, c.peer), nil }

// SetDeadline sets the deadline of Read.
func (c *SCTPConn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

// SetReadDeadline sets the deadline of later calls of Read.
func (c *SCTPConn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.readDeadline = t
	return nil
}

// SetWriteDeadline does nothing.
func (c *SCTPConn) SetWriteDeadline(time.Time) error { return nil }
