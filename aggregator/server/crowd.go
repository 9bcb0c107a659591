package server

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/time/rate"
)

const (
	// DefaultMaxConnections is the number of connections at a time, and
	// DefaultMaxConnectionsPerUser that of one uid. An idle one costs some 100
	// KiB.
	DefaultMaxConnections        = 4096
	DefaultMaxConnectionsPerUser = 2048
	// maxHeaders is the size of a call's metadata in bytes.
	maxHeaders = 16 << 10
	// readBuffer is what every connection has, idle ones too.
	readBuffer = 32 << 10
	// DefaultHandshakeTimeout is how long a connection may take until it speaks
	// HTTP/2.
	DefaultHandshakeTimeout = 10 * time.Second
	// maxStreamsPerUser is the number of Publish and Watch calls at a time of
	// one uid, over all its connections.
	maxStreamsPerUser = 4096
	// maxRefused is how many connections beyond the limits are kept for a
	// moment, for refusedGrace, so that their calls can be told why they are
	// refused. Further ones are closed at once.
	maxRefused   = 64
	refusedGrace = 5 * time.Second
)

// errCrowded is a refusal of the caller for having too much open.
var errCrowded = errors.New("limit exceeded")

// crowd counts what callers have open, and bounds it: no user can take all
// connections, and all users together leave descriptors for the daemon itself.
type crowd struct {
	log          *slog.Logger
	total, perID int
	// told limits the lines about refused connections.
	told rate.Sometimes

	mu      sync.Mutex
	open    int
	refused int
	by      map[uint32]int
	streams map[uint32]int
}

// newCrowd returns a crowd with these limits, 0 for the defaults.
func newCrowd(total, perUser int, log *slog.Logger) *crowd {
	if total == 0 {
		total = DefaultMaxConnections
		var limit unix.Rlimit
		if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err == nil && limit.Cur/4*3 < uint64(total) {
			total = int(limit.Cur / 4 * 3) //nolint:gosec // it is less
		}
	}
	if perUser == 0 {
		perUser = min(DefaultMaxConnectionsPerUser, total/2)
	}
	return &crowd{
		log: log, total: total, perID: perUser, told: rate.Sometimes{First: 1, Interval: 10 * time.Second},
		by: make(map[uint32]int), streams: make(map[uint32]int),
	}
}

// enter counts a connection. The error says why its calls are refused; keep is
// false if it is to be closed at once.
func (c *crowd) enter(uid uint32) (refusal error, keep bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.by[uid] >= c.perID:
		refusal = fmt.Errorf("%w: uid %d has %d connections open: at most %d are allowed", errCrowded, uid, c.by[uid], c.perID)
	case c.open >= c.total:
		refusal = fmt.Errorf("%w: %d connections are open: at most %d are allowed", errCrowded, c.open, c.total)
	default:
		c.by[uid]++
		c.open++
		return nil, true
	}
	if c.refused >= maxRefused {
		return refusal, false
	}
	c.refused++
	return refusal, true
}

// leave takes back what enter counted.
func (c *crowd) leave(uid uint32, refused bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if refused {
		c.refused--
		return
	}
	c.open--
	if c.by[uid]--; c.by[uid] == 0 {
		delete(c.by, uid)
	}
}

// stream counts a stream until done is called.
//
// Possible errors: errCrowded.
func (c *crowd) stream(uid uint32) (done func(), _ error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.streams[uid] >= maxStreamsPerUser {
		return nil, fmt.Errorf("%w: uid %d has %d streams open: at most %d are allowed", errCrowded, uid, c.streams[uid], maxStreamsPerUser)
	}
	c.streams[uid]++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.streams[uid]--; c.streams[uid] == 0 {
			delete(c.streams, uid)
		}
	}, nil
}

// gate is a listener that lets no more in than the crowd may hold.
type gate struct {
	net.Listener
	crowd *crowd
}

// acceptError is a failure to accept that can pass, as far as one can tell: a
// lack of descriptors or memory. gRPC would end the server for some of them.
type acceptError struct{ error }

// Temporary tells gRPC to try again after a while.
func (acceptError) Temporary() bool { return true }

// Accept returns the next connection that may stay.
func (g *gate) Accept() (net.Conn, error) {
	for {
		conn, err := g.Listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil, err
		}
		if err != nil {
			g.crowd.told.Do(func() { g.crowd.log.Error("cannot accept connections: retrying", "error", err) })
			return nil, acceptError{err}
		}
		peer, err := peerOf(conn)
		if err != nil {
			// It is gone already.
			_ = conn.Close()
			continue
		}
		refusal, keep := g.crowd.enter(peer.UID)
		if refusal != nil {
			g.crowd.told.Do(func() {
				g.crowd.log.Warn("refused a connection", "pid", peer.PID, "uid", peer.UID, "gid", peer.GID, "error", refusal)
			})
		}
		if !keep {
			_ = conn.Close()
			continue
		}
		c := &countedConn{Conn: conn, refusal: refusal}
		c.leave = sync.OnceFunc(func() { g.crowd.leave(peer.UID, refusal != nil) })
		if refusal != nil {
			time.AfterFunc(refusedGrace, func() { _ = c.Close() })
		}
		return c, nil
	}
}

// countedConn is a connection that the crowd counts.
type countedConn struct {
	net.Conn
	// refusal is what its calls are answered with, if they are refused.
	refusal error
	leave   func()
}

// Close implements net.Conn.
func (c *countedConn) Close() error {
	c.leave()
	return c.Conn.Close()
}

// SyscallConn implements syscall.Conn: the peer's credentials are read from the
// socket.
func (c *countedConn) SyscallConn() (syscall.RawConn, error) {
	conn, ok := c.Conn.(syscall.Conn)
	if !ok {
		return nil, fmt.Errorf("%T is not a socket", c.Conn)
	}
	return conn.SyscallConn()
}

// refusalOf returns why calls on a connection are refused, or nil.
func refusalOf(c net.Conn) error {
	if counted, ok := c.(*countedConn); ok {
		return counted.refusal
	}
	return nil
}
