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
	// DefaultMaxConnections is the number of connections at a time, and
	// DefaultMaxConnectionsPerUser that of one uid. An idle one costs some 100
	// KiB.
	DefaultMaxConnections        = 4096
	DefaultMaxConnectionsPerUser = 2048
	// maxHeaders is the size of a call's metadata in bytes.
	maxHeaders = 16 << 10
	// readBuffer is what every connection has, idle ones too.
	readBuffer = 32 << 10
	// DefaultHandshakeTimeout is how long a connection may wait before it sends the
	// HTTP/2 preface.
	DefaultHandshakeTimeout = 10 * time.Second
	// maxRefused is how many connections beyond the limits are kept for
	// refusedGrace, so that their calls can fail with the reason. Further ones are
	// closed at once.
	maxRefused   = 64
	refusedGrace = 5 * time.Second
)

// errLimit is a refusal of a caller that has too much open.
var errLimit = errors.New("limit exceeded")

// counts has a number for each key, and forgets a key whose number is 0.
type counts[K comparable] map[K]int

func (c counts[K]) add(key K, n int) {
	if c[key] += n; c[key] == 0 {
		delete(c, key)
	}
}

// connections limits how many connections are open: no user can open all of them, and
// all users together leave descriptors for the daemon itself.
type connections struct {
	log            *slog.Logger
	total, perUser int
	// refusals limits the log lines about refused connections.
	refusals rate.Sometimes

	mu      sync.Mutex
	open    int
	refused int
	byUser  counts[uint32]
}

// newConnections returns the limits, 0 for the defaults.
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
		log: log, total: total, perUser: perUser,
		refusals: rate.Sometimes{First: 1, Interval: 10 * time.Second}, byUser: counts[uint32]{},
	}
}

// add counts a connection. The error says why its calls are refused; keep is false if it
// must be closed at once.
func (c *connections) add(uid uint32) (refusal error, keep bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.byUser[uid] >= c.perUser:
		refusal = fmt.Errorf("%w: uid %d has %d connections open: at most %d are allowed", errLimit, uid, c.byUser[uid], c.perUser)
	case c.open >= c.total:
		refusal = fmt.Errorf("%w: %d connections are open: at most %d are allowed", errLimit, c.open, c.total)
	default:
		c.byUser.add(uid, 1)
		c.open++
		return nil, true
	}
	if c.refused >= maxRefused {
		return refusal, false
	}
	c.refused++
	return refusal, true
}

// remove takes back what add counted.
func (c *connections) remove(uid uint32, refused bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if refused {
		c.refused--
		return
	}
	c.open--
	c.byUser.add(uid, -1)
}

// limitedListener accepts no more connections than the limits allow.
type limitedListener struct {
	net.Listener
	connections *connections
}

// temporaryError is a failure to accept that is assumed to pass, such as a lack of
// descriptors or memory. gRPC would stop the server for some of them.
type temporaryError struct{ error }

// Temporary makes gRPC try again after a while.
func (temporaryError) Temporary() bool { return true }

// Accept returns the next connection that may stay open.
func (l *limitedListener) Accept() (net.Conn, error) {
	limits := l.connections
	for {
		conn, err := l.Listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil, err
		}
		if err != nil {
			limits.refusals.Do(func() { limits.log.Error("cannot accept connections: retrying", "error", err) })
			return nil, temporaryError{err}
		}
		socket, ok := conn.(socketConn)
		peer, err := credentialsOf(conn)
		if err != nil || !ok {
			// The peer is gone already.
			_ = conn.Close()
			continue
		}
		refusal, keep := limits.add(peer.UID)
		if refusal != nil {
			limits.refusals.Do(func() {
				limits.log.Warn("refused a connection", "pid", peer.PID, "uid", peer.UID, "gid", peer.GID, "error", refusal)
			})
		}
		if !keep {
			_ = conn.Close()
			continue
		}
		c := &limitedConn{socketConn: socket, peer: peer, refusal: refusal}
		c.remove = sync.OnceFunc(func() { limits.remove(peer.UID, refusal != nil) })
		if refusal != nil {
			time.AfterFunc(refusedGrace, func() { _ = c.Close() })
		}
		return c, nil
	}
}

// socketConn is a connection with a descriptor.
type socketConn interface {
	net.Conn
	syscall.Conn
}

// limitedConn is a connection that connections counts.
type limitedConn struct {
	socketConn
	// peer has the credentials of the process that connected.
	peer access.Peer
	// refusal is the error of all calls, if they are refused.
	refusal error
	remove  func()
}

// Close implements net.Conn.
func (c *limitedConn) Close() error {
	c.remove()
	return c.socketConn.Close()
}
