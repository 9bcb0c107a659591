package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/weft-proxy/weft/aggregator/access"
	"github.com/weft-proxy/weft/aggregator/admission"
)

// pipeConn is a connection that can only be closed.
type pipeConn struct {
	socketConn
	closed bool
}

func (c *pipeConn) Close() error {
	c.closed = true
	return nil
}

func TestConnectionLimits(t *testing.T) {
	c := newConnections(8, 3, slog.New(slog.DiscardHandler))
	// connect makes a connection as a listener and a handshake do. It returns why it
	// is refused.
	connect := func(uid uint32, system bool) (*limitedConn, error) {
		conn := &limitedConn{socketConn: &pipeConn{}, limits: c, peer: access.Peer{UID: uid}, identified: func() {}}
		err := c.admit(conn, system)
		if err != nil && !c.refuse(conn, err) {
			_ = conn.Close()
		}
		return conn, err
	}
	add := func(uid uint32, system, in bool) *limitedConn {
		t.Helper()
		conn, err := connect(uid, system)
		if in != (err == nil) || err != nil && !errors.Is(err, errLimit) {
			t.Fatalf("uid %d: error %v: want in %v", uid, err, in)
		}
		return conn
	}
	var first *limitedConn
	for range 3 {
		first = add(1, false, true)
	}
	refused := add(1, false, false)
	for range 3 {
		add(2, false, true)
	}
	add(3, false, false) // six of eight are open, and two are reserved
	add(0, true, true)
	add(0, true, true)
	add(0, true, false)
	for range 2 {
		if err := errors.Join(first.Close(), refused.Close()); err != nil {
			t.Fatal(err)
		}
	}
	add(0, true, true)
	for c.refused < maxRefused {
		add(3, false, false)
	}
	if conn, err := connect(3, false); err == nil || !conn.socketConn.(*pipeConn).closed {
		t.Fatalf("a connection beyond those that are told why: error %v", err)
	}
	if c.open != 8 || c.byUser[1] != 2 || c.byUser[3] != 0 {
		t.Errorf("%d are open, %v by user: want 8, two of user 1 and none of user 3", c.open, c.byUser)
	}
}

// TestUnidentifiedConnections: a burst of connections waits in the socket's queue, and does
// not keep out the system.
func TestUnidentifiedConnections(t *testing.T) {
	socket, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	c := newConnections(8, 3, slog.New(slog.DiscardHandler))
	l := &limitedListener{Listener: socket, connections: c}
	defer l.Close()
	for range maxUnidentified + 1 {
		conn, err := net.Dial("unix", socket.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	var last *limitedConn
	for range maxUnidentified {
		conn, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		last = conn.(*limitedConn)
	}
	if len(c.unidentified) != cap(c.unidentified) {
		t.Fatalf("%d connections are unidentified: one more must have to wait for %d", len(c.unidentified), cap(c.unidentified))
	}
	if err := c.admit(last, true); err != nil {
		t.Errorf("the system is refused: %v", err)
	}
	last.identified()
	if err := last.Close(); err != nil {
		t.Fatal(err)
	}
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil || c.open != 0 {
		t.Errorf("%d connections are open, %v: want none", c.open, err)
	}
}

func TestStreamLimits(t *testing.T) {
	control, err := access.Open(access.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := newStreams(control)
	user := func(uid uint32) caller { return caller{Peer: access.Peer{UID: uid}} }
	for range maxStreamsPerUser {
		if _, err := s.add(user(9), "Watch"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.add(user(9), "Watch"); !errors.Is(err, errLimit) {
		t.Fatalf("one stream too many: %v", err)
	}
	o, err := s.add(user(10), "Watch")
	if err != nil {
		t.Fatal(err)
	}
	s.remove(o)
	if _, ok := s.byUser[10]; ok {
		t.Fatal("a user without a stream is remembered")
	}
}

func TestUnfinishedSnapshotsAreBounded(t *testing.T) {
	partial, streams := newBudget(), map[string]*inFlight{}
	for _, p := range []string{"a", "b", "c"} {
		streams[p] = newInFlight(caller{Identity: access.Identity{Publisher: p}}, partial)
	}
	send := func(publisher string) error {
		_, err := streams[publisher].receive(t.Context(), admission.MaxBytes/2, true)
		return err
	}
	for _, step := range []struct {
		publisher string
		ok        bool
	}{{"a", true}, {"a", true}, {"a", false}, {"b", true}, {"b", true}, {"c", true}, {"c", false}, {"a", false}} {
		if err := send(step.publisher); (err == nil) != step.ok || err != nil && !errors.Is(err, errLimit) {
			t.Fatalf("%s: %v", step.publisher, err)
		}
	}
	streams["a"].close()
	if err := send("c"); err != nil {
		t.Fatal(err)
	}
	streams["b"].close()
	streams["c"].close()
	if partial.total != 0 || len(partial.byPublisher) != 0 {
		t.Fatalf("left: %d bytes of %v", partial.total, partial.byPublisher)
	}
}

func TestInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newInFlight(caller{Identity: access.Identity{Publisher: "p"}}, newBudget())
		ctx, cancel := context.WithCancel(t.Context())
		take := func(n int, more bool) int {
			t.Helper()
			size, err := f.receive(ctx, n, more)
			if err != nil {
				t.Fatal(err)
			}
			return size
		}
		if n := take(maxInFlightBytes/2, true) + take(maxInFlightBytes/4, true); n != 0 || f.partial.byPublisher["p"] != maxInFlightBytes/4*3 {
			t.Fatalf("an update of %d bytes, parts %v", n, f.partial.byPublisher)
		}
		size := take(maxInFlightBytes, false)
		if size != maxInFlightBytes || len(f.partial.byPublisher) != 0 {
			t.Fatalf("an update of %d bytes, parts %v", size, f.partial.byPublisher)
		}
		next := make(chan error, 1)
		receive := func() {
			_, err := f.receive(ctx, 1, false)
			next <- err
		}
		go receive()
		if synctest.Wait(); len(next) > 0 {
			t.Fatal("a message was taken while too much was in flight")
		}
		f.acknowledged(size)
		if err := <-next; err != nil {
			t.Fatal(err)
		}
		take(maxInFlightBytes-1, false)
		go receive()
		synctest.Wait()
		cancel()
		if err := <-next; !errors.Is(err, context.Canceled) {
			t.Fatalf("a wait that was ended: %v", err)
		}
		take(1, true)
		if f.close(); len(f.partial.byPublisher) != 0 {
			t.Errorf("parts of an ended stream: %v", f.partial.byPublisher)
		}
	})
}
