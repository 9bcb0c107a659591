package server

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-proxy/weft/aggregator/access"
	"github.com/weft-proxy/weft/aggregator/admission"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/conntrack"
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
		must(t, errors.Join(first.Close(), refused.Close()))
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
	must(t, err)
	c := newConnections(8, 3, slog.New(slog.DiscardHandler))
	l := &limitedListener{Listener: socket, connections: c}
	defer l.Close()
	for range maxUnidentified + 1 {
		conn, err := net.Dial("unix", socket.Addr().String())
		must(t, err)
		defer conn.Close()
	}
	var last *limitedConn
	for range maxUnidentified {
		conn, err := l.Accept()
		must(t, err)
		last = conn.(*limitedConn)
	}
	if len(c.unidentified) != cap(c.unidentified) {
		t.Fatalf("%d connections are unidentified: one more must have to wait for %d", len(c.unidentified), cap(c.unidentified))
	}
	// The system is let in.
	must(t, c.admit(last, true))
	last.identified()
	must(t, last.Close())
	conn, err := l.Accept()
	must(t, err)
	if err := conn.Close(); err != nil || c.open != 0 {
		t.Errorf("%d connections are open, %v: want none", c.open, err)
	}
}

func TestStreamLimits(t *testing.T) {
	control, err := access.Open(access.Options{})
	must(t, err)
	s := newStreams(control)
	user := func(uid uint32) caller { return caller{Peer: access.Peer{UID: uid}} }
	for range maxStreamsPerUser {
		must(t, errorOf(s.add(user(9), "Watch")))
	}
	wantErr(t, "one stream too many", errorOf(s.add(user(9), "Watch")), errLimit)
	o, err := s.add(user(10), "Watch")
	must(t, err)
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
	must(t, send("c"))
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
			must(t, err)
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
		must(t, <-next)
		take(maxInFlightBytes-1, false)
		go receive()
		synctest.Wait()
		cancel()
		wantErr(t, "a wait that was ended", <-next, context.Canceled)
		take(1, true)
		if f.close(); len(f.partial.byPublisher) != 0 {
			t.Errorf("parts of an ended stream: %v", f.partial.byPublisher)
		}
	})
}

// TestLargeRequestsTakeTurns reserves memory for requests of several publishers.
func TestLargeRequestsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDecoder(nil)
		as := func(publisher string, system bool) caller {
			return caller{Identity: access.Identity{Publisher: publisher, System: system}}
		}
		a, b, c := as("a", false), as("b", false), as("c", false)
		// begin reserves n bytes. The channel gets how to release them.
		begin := func(ctx context.Context, c caller, n int) chan func() {
			done := make(chan func(), 1)
			go func() {
				release, err := d.reserve(ctx, c, n)
				if err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				done <- release
			}()
			synctest.Wait()
			return done
		}
		waits := func(done chan func(), why string) {
			t.Helper()
			if synctest.Wait(); len(done) != 0 {
				t.Fatalf("%s: it has its turn", why)
			}
		}
		first := begin(t.Context(), a, maxDecoding/2)
		release := <-first
		second := begin(t.Context(), a, 1)
		waits(second, "a second of the same publisher")
		ctx, cancel := context.WithCancel(t.Context())
		third := begin(ctx, a, 1)
		cancel()
		if r := <-third; r != nil {
			t.Fatal("a call that was given up has its turn")
		}
		other := begin(t.Context(), b, maxDecoding/2)
		releaseOther := <-other
		full := begin(t.Context(), c, 1)
		waits(full, "all memory is reserved")
		system := begin(t.Context(), as("services", true), 3*maxDecoding)
		(<-system)()
		release()
		(<-second)()
		(<-full)()
		releaseOther()
		(<-begin(t.Context(), a, 2*maxDecoding))()
		if len(d.decoding) != 0 {
			t.Errorf("%d publishers are remembered", len(d.decoding))
		}
	})
}

var someEntry = &conntrack.Entry{Protocol: 17, Source: netip.MustParseAddrPort("10.0.0.1:4000"), Destination: netip.MustParseAddrPort("10.96.0.10:53"),
	ReplySource: netip.MustParseAddrPort("[fd00::1]:5353"), ReplyDestination: netip.MustParseAddrPort("10.0.0.1:4000")}

// fill adds entries until an error, and returns how many.
func fill(p *flowParts, most int) (int, error) {
	for n := range most {
		if err := p.add(someEntry); err != nil {
			return n, err
		}
	}
	return most, nil
}

// TestReaderPatience has readers of several speeds.
func TestReaderPatience(t *testing.T) {
	const parts = 20
	for _, tt := range []struct {
		name   string
		pause  time.Duration
		want   error
		waited time.Duration
	}{
		{"at once", 0, nil, 0},
		{"fast enough", 200 * time.Millisecond, nil, parts * 200 * time.Millisecond},
		{"a little at a time", time.Second, errSlowReader, readerPatience},
		{"never", time.Hour, errSlowReader, readerPatience},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				sent := 0
				p := sendFlows(ctx, func(resp *weftv1.ListFlowsResponse) error {
					sent += len(resp.GetFlows())
					select {
					case <-time.After(tt.pause):
						return nil
					case <-ctx.Done():
						return ctx.Err()
					}
				})
				began := time.Now()
				_, err := fill(p, parts*flowsOfPart)
				err = p.finish(err)
				if !errors.Is(err, tt.want) || err == nil && sent != parts*flowsOfPart {
					t.Errorf("error %v after %d entries, want %v", err, sent, tt.want)
				}
				if d := time.Since(began); d != tt.waited || p.waited != d {
					t.Errorf("took %v, of which it waited for %v; want %v", d, p.waited, tt.waited)
				}
			})
		})
	}
}

// TestReaderIsGone has readers that end in the middle, and at the end.
func TestReaderIsGone(t *testing.T) {
	gone := errors.New("gone")
	for _, entries := range []int{1, flowsOfPart, 100 * flowsOfPart} {
		synctest.Test(t, func(t *testing.T) {
			p := sendFlows(t.Context(), func(*weftv1.ListFlowsResponse) error { return gone })
			_, err := fill(p, entries)
			if err := p.finish(err); !errors.Is(err, gone) {
				t.Errorf("%d entries: error %v, want that of sending", entries, err)
			}
		})
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			p := sendFlows(ctx, func(*weftv1.ListFlowsResponse) error { <-ctx.Done(); return ctx.Err() })
			time.AfterFunc(time.Second, cancel)
			_, err := fill(p, entries)
			if err := p.finish(err); !errors.Is(err, context.Canceled) {
				t.Errorf("%d entries: error %v, want the context's", entries, err)
			}
		})
	}
}

// TestCallsWithTurns says which calls have turns, and whether administrators have them too.
func TestCallsWithTurns(t *testing.T) {
	got := map[string]bool{}
	for method, turns := range newCallTurns() {
		got[method] = turns.administrators
	}
	want := map[string]bool{
		weftv1.Publisher_Plan_FullMethodName: false, weftv1.History_ListRevisions_FullMethodName: false, weftv1.History_CompareRevisions_FullMethodName: false,
		weftv1.Flows_ListFlows_FullMethodName: true, weftv1.Flows_DeleteFlows_FullMethodName: true,
	}
	if !maps.Equal(got, want) {
		t.Errorf("calls with turns, true if those of administrators too: %v, want %v", got, want)
	}
}
