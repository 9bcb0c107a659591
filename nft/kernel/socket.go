package kernel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	raw "github.com/mdlayher/socket"
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/attr"
)

// recvBuffer fits one datagram: dumps come in at most 32 KiB.
const recvBuffer = 64 << 10

type socket struct {
	conn   *raw.Conn
	raw    syscall.RawConn
	portID uint32
	buf    []byte
	// requested sizes
	sendSize, recvSize int
	closed             atomic.Bool
	// pending means possible answers in the receive buffer.
	pending bool
	// The closures of system calls are made once: each commit needs several calls.
	reading reading
	writing writing
}

type reading struct {
	call  func(fd uintptr) bool
	wait  bool
	n     int
	from  unix.Sockaddr
	errno error
}

type writing struct {
	call  func(fd uintptr) bool
	b     []byte
	to    unix.SockaddrNetlink
	errno error
	// took is processor time.
	took  time.Duration
	clock callClock
}

func dial(netNS int) (*socket, error) {
	conn, err := raw.Socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER, "netlink", &raw.Config{NetNS: netNS})
	if err != nil {
		return nil, fmt.Errorf("open nftables netlink socket: %w", err)
	}
	if err := conn.Bind(&unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, errors.Join(fmt.Errorf("bind nftables netlink socket: %w", err), conn.Close())
	}
	return newSocket(conn)
}

func newSocket(conn *raw.Conn) (*socket, error) {
	fail := func(err error) (*socket, error) {
		return nil, errors.Join(fmt.Errorf("set up nftables netlink socket: %w", err), conn.Close())
	}
	s := &socket{conn: conn, buf: make([]byte, recvBuffer)}
	address, err := conn.Getsockname()
	if err != nil {
		return fail(err)
	}
	if a, ok := address.(*unix.SockaddrNetlink); ok {
		s.portID = a.Pid
	}
	if s.raw, err = conn.SyscallConn(); err != nil {
		return fail(err)
	}
	// From Linux 4.12 and 4.2. The first explains errors, the second omits the request.
	for _, o := range []int{unix.NETLINK_EXT_ACK, unix.NETLINK_CAP_ACK} {
		if err := conn.SetsockoptInt(unix.SOL_NETLINK, o, 1); err != nil {
			return fail(err)
		}
	}
	s.reading.call = func(fd uintptr) bool {
		r := &s.reading
		r.n, r.from, r.errno = unix.Recvfrom(int(fd), s.buf, unix.MSG_DONTWAIT|unix.MSG_TRUNC)
		return !r.wait || !errors.Is(r.errno, unix.EAGAIN)
	}
	s.writing.to.Family = unix.AF_NETLINK
	s.writing.call = func(fd uintptr) bool {
		w := &s.writing
		w.clock.start(len(w.b))
		w.errno = unix.Sendto(int(fd), w.b, 0, &w.to)
		w.took = w.clock.stop()
		return !errors.Is(w.errno, unix.EAGAIN)
	}
	return s, nil
}

// close ends the ownership of the socket's tables.
func (s *socket) close() error {
	s.closed.Store(true)
	return s.conn.Close()
}

// reserve enlarges the buffers. Without CAP_NET_ADMIN in the initial user namespace the kernel
// gives less, and send fails with EMSGSIZE.
func (s *socket) reserve(send, recv int) error {
	if send > s.sendSize {
		if err := s.conn.SetWriteBuffer(send); err != nil {
			return fmt.Errorf("size send buffer: %w", s.failure("setsockopt", err, nil))
		}
		s.sendSize = send
	}
	if recv > s.recvSize {
		if err := s.conn.SetReadBuffer(recv); err != nil {
			return fmt.Errorf("size receive buffer: %w", s.failure("setsockopt", err, nil))
		}
		s.recvSize = recv
	}
	return nil
}

func (s *socket) send(b []byte) error {
	s.pending = true
	s.writing.b = b
	err := s.raw.Write(s.writing.call)
	s.writing.b = nil
	return s.failure("sendmsg", err, s.writing.errno)
}

// recv returns a buffer that the next call reuses, or EAGAIN if wait is false. It skips datagrams
// from other senders than the kernel.
func (s *socket) recv(wait bool) ([]byte, error) {
	for {
		s.reading.wait = wait
		err := s.raw.Read(s.reading.call)
		n, from := s.reading.n, s.reading.from
		if err := s.failure("recvmsg", err, s.reading.errno); err != nil {
			if errors.Is(err, unix.EINTR) {
				continue
			}
			if errors.Is(err, unix.EAGAIN) {
				s.pending = false
			}
			return nil, err
		}
		if sender, ok := from.(*unix.SockaddrNetlink); !ok || sender.Pid != 0 {
			continue
		}
		if n > len(s.buf) {
			return nil, fmt.Errorf("receive %d bytes into a buffer of %d: %w", n, len(s.buf), ErrMalformed)
		}
		return s.buf[:n], nil
	}
}

func (s *socket) drain() error {
	for s.pending {
		_, err := s.recv(false)
		switch {
		case err == nil, errors.Is(err, unix.ENOBUFS), errors.Is(err, ErrMalformed):
		case errors.Is(err, unix.EAGAIN):
		default:
			return err
		}
	}
	return nil
}

// The poller's error for a closed socket has no type to match, so failure returns ErrClosed.
func (s *socket) failure(call string, err, errno error) error {
	switch {
	case err == nil && errno == nil:
		return nil
	case s.closed.Load():
		return ErrClosed
	case err != nil:
		return fmt.Errorf("%s: %w", call, err)
	default:
		return os.NewSyscallError(call, errno)
	}
}

// kernelError is an acknowledgement if errno is 0.
type kernelError struct {
	errno   syscall.Errno
	message string
	// offset is of the wrong attribute in the request; 0 if not reported.
	offset int
}

func parseError(flags uint16, payload []byte) (kernelError, error) {
	if len(payload) < 4+headerLen {
		return kernelError{}, ErrMalformed
	}
	ke := kernelError{errno: syscall.Errno(-int32(binary.NativeEndian.Uint32(payload)))}
	if flags&unix.NLM_F_ACK_TLVS == 0 {
		return ke, nil
	}
	skip := headerLen
	if flags&unix.NLM_F_CAPPED == 0 {
		skip = int((uint64(binary.NativeEndian.Uint32(payload[4:])) + 3) &^ 3)
	}
	if skip < headerLen || skip > len(payload)-4 {
		return kernelError{}, ErrMalformed
	}
	a := attr.NewReader(payload[4+skip:])
	for a.Next() {
		switch a.Type() {
		case unix.NLMSGERR_ATTR_MSG:
			ke.message = a.Text()
		case unix.NLMSGERR_ATTR_OFFS:
			ke.offset = int(a.Uint32NE())
		}
	}
	return ke, a.Err()
}
