package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// TestConnectionsMakeRoom keeps connections open until there are too many: idle ones are
// closed, and new ones are answered.
func TestConnectionsMakeRoom(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() {
		served <- new(httpServers).serve(ctx, l, endpoint{}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") }))
	}()
	t.Cleanup(func() { cancel(); <-served })
	most := newHTTPConnections().most
	idle := make([]net.Conn, 2*most)
	for i := range idle {
		if idle[i], err = net.Dial("tcp", l.Addr().String()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = idle[i].Close() })
		_, _ = fmt.Fprint(idle[i], "GET / HTTP/1.1\r\nHost: weft\r\n\r\n")
		_ = idle[i].SetReadDeadline(time.Now().Add(3 * time.Minute))
		if n, err := idle[i].Read(make([]byte, 4096)); err != nil {
			t.Fatalf("connection %d gets %d bytes: %v", i, n, err)
		}
	}
	// All but as many as may be open are closed. Which ones depends on when the server has
	// seen that they are idle; the last one stays.
	closed := make(chan error, len(idle))
	for _, conn := range idle[:len(idle)-1] {
		go func() {
			_, err := conn.Read(make([]byte, 1))
			closed <- err
		}()
	}
	for range len(idle) - most {
		if err := <-closed; !errors.Is(err, io.EOF) {
			t.Errorf("a connection that must make room: %v, want that it is closed", err)
		}
	}
	if _, err := fmt.Fprint(idle[len(idle)-1], "GET / HTTP/1.1\r\nHost: weft\r\n\r\n"); err != nil {
		t.Error(err)
	}
	if _, err := idle[len(idle)-1].Read(make([]byte, 4096)); err != nil {
		t.Errorf("the last connection: %v, want an answer", err)
	}
}

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
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
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
