package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"testing"

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
	u := &partialSnapshots{byPublisher: counts[string]{}}
	half := admission.MaxBytes / 2
	for _, step := range []struct {
		publisher string
		ok        bool
	}{{"a", true}, {"a", true}, {"a", false}, {"b", true}, {"b", true}, {"c", true}, {"c", false}, {"a", false}} {
		if err := u.add(step.publisher, half); (err == nil) != step.ok || err != nil && !errors.Is(err, errLimit) {
			t.Fatalf("%s: %v", step.publisher, err)
		}
	}
	u.remove("a", 2*half)
	if err := u.add("c", half); err != nil {
		t.Fatal(err)
	}
	u.remove("b", 2*half)
	u.remove("c", 2*half)
	if u.total != 0 || len(u.byPublisher) != 0 {
		t.Fatalf("left: %d bytes of %v", u.total, u.byPublisher)
	}
}

func TestInFlight(t *testing.T) {
	b := newInFlight("p", &partialSnapshots{byPublisher: counts[string]{}})
	ctx, cancel := context.WithCancel(t.Context())
	take := func(bytes int, more bool) {
		t.Helper()
		if err := b.receive(ctx, bytes, more); err != nil {
			t.Fatal(err)
		}
	}
	take(maxInFlightBytes/2, true)
	take(maxInFlightBytes/4, true)
	if b.partial.byPublisher["p"] < maxInFlightBytes/4*3 {
		t.Fatalf("parts of %d bytes", b.partial.byPublisher["p"])
	}
	take(maxInFlightBytes/4, false)
	n := b.complete()
	if n < maxInFlightBytes || len(b.partial.byPublisher) != 0 {
		t.Fatalf("an update of %d bytes, parts %v", n, b.partial.byPublisher)
	}
	taken := make(chan error)
	go func() { taken <- b.receive(ctx, 1, false) }()
	select {
	case err := <-taken:
		t.Fatalf("a message was taken while too much was in flight: %v", err)
	case b.room <- struct{}{}:
		// Woken for nothing, it waits again.
	}
	b.acknowledged(n)
	if err := <-taken; err != nil {
		t.Fatal(err)
	}
	b.acknowledged(-2 * maxInFlightBytes)
	cancel()
	if err := b.wait(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("a wait that was ended: %v", err)
	}
	b.close()
}
