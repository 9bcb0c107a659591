package daemon

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"
)

// TestOldestConnection closes idle connections before those with a request.
func TestOldestConnection(t *testing.T) {
	c := &httpConnections{most: 2, open: make(map[net.Conn]httpConnection)}
	conns := make([]net.Conn, 4)
	for i := range conns {
		conns[i], _ = net.Pipe()
	}
	c.changed(conns[0], http.StateNew)
	c.changed(conns[0], http.StateActive)
	c.changed(conns[1], http.StateNew)
	c.changed(conns[2], http.StateNew)
	if _, ok := c.open[conns[1]]; ok || len(c.open) != 2 {
		t.Errorf("%d connections are open: want that the idle one is closed", len(c.open))
	}
	c.changed(conns[1], http.StateIdle)
	c.changed(conns[2], http.StateActive)
	c.changed(conns[3], http.StateNew)
	if _, ok := c.open[conns[0]]; ok || len(c.open) != 2 {
		t.Errorf("%d connections are open: want that the older request is closed", len(c.open))
	}
	c.changed(conns[3], http.StateClosed)
	if len(c.open) != 1 {
		t.Errorf("%d connections are open: want 1", len(c.open))
	}
}

// TestSlowReaderIsCutOff has a client that does not read its answer: the server gives up, and nothing waits for the client.
func TestSlowReaderIsCutOff(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	served, cut := make(chan error, 1), make(chan error, 1)
	go func() {
		served <- (&httpServers{patience: 50 * time.Millisecond}).serve(ctx, l, endpoint{}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, err := w.Write(make([]byte, 64<<20))
			cut <- err
		}))
	}()
	t.Cleanup(func() { cancel(); <-served })
	conn, err := net.Dial("tcp", l.Addr().String())
	must(t, err)
	defer conn.Close()
	_, _ = fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: weft\r\n\r\n")
	select {
	case err := <-cut:
		if err == nil {
			t.Error("64 MiB are written to a client that reads nothing")
		}
	case <-time.After(3 * time.Minute):
		t.Error("the server waits for the client")
	}
}
