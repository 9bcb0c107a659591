package daemon

import (
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxHTTPConnections leaves descriptors for publishers.
	maxHTTPConnections = 64
	// An HTTP server has at most one in descriptorShare of the process's descriptors.
	descriptorShare = 16
	idleTimeout     = time.Minute
	headerTimeout   = 5 * time.Second
	// from the end of the header until the answer was read
	writeTimeout = 30 * time.Second
)

// httpConnections limits the connections of an HTTP server so that clients do not block a probe.
// Above the limit, it closes the longest idle connection or, if all are busy, the connection with
// the oldest request.
type httpConnections struct {
	most int

	mu   sync.Mutex
	open map[net.Conn]httpConnection
}

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

// changed implements http.Server.ConnState.
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
	// A closed connection may still report a state.
	if _, ok := c.open[conn]; ok || state == http.StateNew {
		c.open[conn] = httpConnection{idle: state != http.StateActive, since: time.Now()}
	}
}

// c.mu is held, and c.open is not empty.
func (c *httpConnections) oldest() (oldest net.Conn) {
	for conn, this := range c.open {
		best := c.open[oldest]
		if oldest == nil || this.idle && !best.idle || this.idle == best.idle && this.since.Before(best.since) {
			oldest = conn
		}
	}
	return oldest
}
