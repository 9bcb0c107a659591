package nri

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync/atomic"
)

// NRI has one request in flight. ttrpc has the same limit maxMessage.
const (
	maxRequests = 16
	maxMessage  = 4 << 20
	maxFrame    = messageHeader + maxMessage
	maxFrames   = 32
)

// The length is first in a message of ttrpc, and second in a frame.
const (
	frameHeader   = 8
	messageHeader = 10
)

// Of ttrpc, in the ninth byte of the header.
const (
	requestMessage  = 1
	responseMessage = 2
)

// checker finds the headers in arbitrary parts of a stream; nil accepts everything.
type checker struct {
	check  func(header []byte) (length uint32, err error)
	header []byte
	// Header bytes so far, and content bytes to come.
	have, left int
}

func (c *checker) next(b []byte) error {
	for c != nil && len(b) > 0 {
		if c.left > 0 {
			n := min(c.left, len(b))
			b, c.left = b[n:], c.left-n
			continue
		}
		n := copy(c.header[c.have:], b)
		b, c.have = b[n:], c.have+n
		if c.have < len(c.header) {
			return nil
		}
		length, err := c.check(c.header)
		if err != nil {
			return err
		}
		c.have, c.left = 0, int(length)
	}
	return nil
}

// checkedConn checks headers before the packages of NRI: these allocate the announced sizes, and end
// the process for some messages.
type checkedConn struct {
	net.Conn
	in, out *checker
	fail    func(error)
}

// Read implements net.Conn.
func (c *checkedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if bad := c.in.next(b[:n]); bad != nil {
		c.fail(bad)
		return 0, io.EOF
	}
	return n, err
}

// Write implements net.Conn.
func (c *checkedConn) Write(b []byte) (int, error) {
	if err := c.out.next(b); err != nil {
		c.fail(err)
		return 0, err
	}
	return c.Conn.Write(b)
}

func checkFrames(conn net.Conn, fail func(error)) net.Conn {
	return &checkedConn{Conn: conn, fail: fail, in: &checker{header: make([]byte, frameHeader), check: func(h []byte) (uint32, error) {
		length := binary.BigEndian.Uint32(h[4:])
		if length > maxFrame {
			return 0, fmt.Errorf("the runtime sent a frame of %d bytes, more than %d", length, maxFrame)
		}
		return length, nil
	}}}
}

func checkRequests(conn net.Conn, fail func(error)) net.Conn {
	var open atomic.Int32
	return &checkedConn{Conn: conn, fail: fail,
		in: checkMessages(requestMessage, func() error {
			if open.Add(1) > maxRequests {
				return fmt.Errorf("the runtime sent more than %d requests at once", maxRequests)
			}
			return nil
		}),
		out: checkMessages(responseMessage, func() error { open.Add(-1); return nil }),
	}
}

func checkResponses(conn net.Conn, fail func(error)) net.Conn {
	return &checkedConn{Conn: conn, fail: fail, in: checkMessages(responseMessage, func() error { return nil })}
}

func checkMessages(want byte, count func() error) *checker {
	return &checker{header: make([]byte, messageHeader), check: func(h []byte) (uint32, error) {
		length := binary.BigEndian.Uint32(h)
		switch {
		case h[8] != want:
			return 0, fmt.Errorf("the runtime sent a message of type %d, want %d", h[8], want)
		case length > maxMessage:
			return 0, fmt.Errorf("the runtime sent a message of %d bytes, more than %d", length, maxMessage)
		}
		return length, count()
	}}
}
