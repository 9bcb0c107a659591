package daemon

import (
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxHTTPConnections is the number of connections of one HTTP server at a time. The
	// kubelet, load balancers and monitoring need a few each, and the rest of the
	// daemon's descriptors is for publishers.
	maxHTTPConnections = 64
	// descriptorShare is the part of the process's descriptors, one in so many, that the
	// connections of one HTTP server may use, if that is less.
	descriptorShare = 16
	// idleTimeout is how long a connection may be open between two requests.
	idleTimeout = time.Minute
	// headerTimeout is how long the header of a request may take.
	headerTimeout = 5 * time.Second
	// writeTimeout is how long a request may take after its header, until the answer was read.
	writeTimeout = 30 * time.Second
)

// httpConnections limits the connections of an HTTP server. A new connection is always
// accepted: if there are too many, the one that has been idle for the longest is closed,
// and if none is idle, the one whose request began first. So clients that keep connections
// open do not keep a probe away.
type httpConnections struct {
	most int

	mu   sync.Mutex
	open map[net.Conn]httpConnection
}

// httpConnection is the state of a connection, since when it has it.
type httpConnection struct {
	idle  bool
	since time.Time
}

func newHTTPConnections() *httpConnections {
	c := &httpConnections{most: maxHTTPConnections, open: make(map[net.Conn]httpConnection)}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err == nil && limit.Cur/descriptorShare < maxHTTPConnections {
		c.most = max(1, int(limit.Cur/descriptorShare)) //nolint:gosec // it is less
	}
	return c
}

// changed follows the state of a connection. It is for http.Server.ConnState.
func (c *httpConnections) changed(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if state == http.StateClosed || state == http.StateHijacked {
		delete(c.open, conn)
		return
	}
	if state == http.StateNew && len(c.open) >= c.most {
		oldest := c.oldest()
		delete(c.open, oldest)
		_ = oldest.Close()
	}
	// One that has just been closed to make room may still report a state.
	if _, ok := c.open[conn]; ok || state == http.StateNew {
		c.open[conn] = httpConnection{idle: state != http.StateActive, since: time.Now()}
	}
}

// oldest returns the connection to close next. The lock is held, and there is one.
func (c *httpConnections) oldest() (oldest net.Conn) {
	for conn, this := range c.open {
		best := c.open[oldest]
		if oldest == nil || this.idle && !best.idle || this.idle == best.idle && this.since.Before(best.since) {
			oldest = conn
		}
	}
	return oldest
}
