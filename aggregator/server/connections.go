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

	"github.com/weft-proxy/weft/aggregator/access"
)

const (
	// DefaultMaxConnections and DefaultMaxConnectionsPerUser are the limits for all users and for
	// one uid. An idle connection costs some 100 KiB.
	DefaultMaxConnections        = 4096
	DefaultMaxConnectionsPerUser = 2048
	// bytes of a call's metadata
	maxHeaders = 16 << 10
	// bytes for every connection, idle or not
	readBuffer = 32 << 10
	// DefaultHandshakeTimeout is the default of Config.HandshakeTimeout.
	DefaultHandshakeTimeout = 10 * time.Second
	// One connection in reservedShare is reserved for system callers (access.Identity.System).
	reservedShare = 4
	// maxUnidentified is the number of accepted connections with a peer not yet known. Others wait
	// in the socket's queue, so strangers cannot use reserved connections.
	maxUnidentified = 16
	// maxRefused connections beyond the limits stay open for refusedGrace, so that their calls can
	// fail with the reason. Others are closed at once.
	maxRefused   = 64
	refusedGrace = 5 * time.Second
)

var errLimit = errors.New("limit exceeded")

// counts drops a key at 0.
type counts[K comparable] map[K]int

func (c counts[K]) add(key K, n int) {
	if c[key] += n; c[key] == 0 {
		delete(c, key)
	}
}

// connections limits open connections of each user and of all users.
type connections struct {
	log            *slog.Logger
	total, perUser int
	// one entry for each accepted connection with an unknown peer
	unidentified chan struct{}
	refusals     rate.Sometimes

	mu      sync.Mutex
	open    int
	refused int
	byUser  counts[uint32]
}

func newConnections(total, perUser int, log *slog.Logger) *connections {
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
	return &connections{
		log: log, total: total, perUser: perUser, unidentified: make(chan struct{}, maxUnidentified),
		refusals: rate.Sometimes{First: 1, Interval: 10 * time.Second}, byUser: counts[uint32]{},
	}
}

// admit counts a connection of a known peer. For a system caller, only the total is limited.
func (c *connections) admit(conn *limitedConn, system bool) error {
	uid := conn.peer.UID
	c.mu.Lock()
	defer c.mu.Unlock()
	most := c.total - c.total/reservedShare
	switch {
	case c.open >= c.total:
		return fmt.Errorf("%w: %d connections are open: at most %d are allowed", errLimit, c.open, c.total)
	case system:
	case c.byUser[uid] >= c.perUser:
		return fmt.Errorf("%w: uid %d has %d connections open: at most %d are allowed", errLimit, uid, c.byUser[uid], c.perUser)
	case c.open >= most:
		return fmt.Errorf("%w: %d connections are open: at most %d are allowed, and the rest is reserved for the system", errLimit, c.open, most)
	}
	c.open++
	c.byUser.add(uid, 1)
	conn.counted = &c.open
	return nil
}

// refuse counts a connection with refused calls. If keep is false, the caller must close the
// connection.
func (c *connections) refuse(conn *limitedConn, refusal error) (keep bool) {
	peer := conn.peer
	c.refusals.Do(func() {
		c.log.Warn("refused a connection", "pid", peer.PID, "uid", peer.UID, "gid", peer.GID, "error", refusal)
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refused >= maxRefused {
		return false
	}
	conn.counted = &c.refused
	c.refused++
	time.AfterFunc(refusedGrace, func() { _ = conn.Close() })
	return true
}

// end requires the lock.
func (c *connections) end(conn *limitedConn) {
	if conn.counted == nil {
		return
	}
	*conn.counted--
	if conn.counted == &c.open {
		c.byUser.add(conn.peer.UID, -1)
	}
	conn.counted = nil
}

type limitedListener struct {
	net.Listener
	connections *connections
}

// temporaryError makes gRPC retry to accept. gRPC would stop the server for some failures, such as
// a lack of descriptors.
type temporaryError struct{ error }

func (temporaryError) Temporary() bool { return true }

// Accept blocks while too many connections are unidentified.
func (l *limitedListener) Accept() (net.Conn, error) {
	limits := l.connections
	limits.unidentified <- struct{}{}
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			<-limits.unidentified
			if errors.Is(err, net.ErrClosed) {
				return nil, err
			}
			limits.refusals.Do(func() { limits.log.Error("cannot accept connections: retrying", "error", err) })
			return nil, temporaryError{err}
		}
		socket, ok := conn.(socketConn)
		peer, err := credentialsOf(conn)
		if err != nil || !ok {
			// The peer is gone.
			_ = conn.Close()
			continue
		}
		c := &limitedConn{socketConn: socket, limits: limits, peer: peer}
		c.identified = sync.OnceFunc(func() { <-limits.unidentified })
		return c, nil
	}
}

type socketConn interface {
	net.Conn
	syscall.Conn
}

type limitedConn struct {
	socketConn
	limits *connections
	peer   access.Peer
	// called when the peer is known, or never will be
	identified func()
	// the number in limits for this connection, or nil; guarded by the lock of limits
	counted *int
}

func (c *limitedConn) Close() error {
	c.identified()
	c.limits.mu.Lock()
	c.limits.end(c)
	c.limits.mu.Unlock()
	return c.socketConn.Close()
}
