package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/peer"

	"github.com/weft-proxy/weft/aggregator/access"
)

// wire is a connection of which the test writes the client's direction and reads as gRPC does.
type wire struct {
	t *testing.T
	*countedConn
	sent   *bytes.Buffer
	client *http2.Framer
}

// wireConn reads from a reader.
type wireConn struct {
	socketConn
	io.Reader
}

func (c *wireConn) Read(b []byte) (int, error) { return c.Reader.Read(b) }

func newWire(t *testing.T, budget *budget, publisher string, system bool, pieces func(io.Reader) io.Reader) *wire {
	t.Helper()
	w := &wire{t: t, sent: &bytes.Buffer{}}
	limited := &limitedConn{socketConn: &wireConn{Reader: pieces(w.sent)}, limits: newConnections(0, 0, nil), peer: access.Peer{}, identified: func() {}}
	w.countedConn = newCountedConn(limited, budget, publisher, system)
	w.client = http2.NewFramer(w.sent, nil)
	w.client.AllowIllegalWrites = true
	w.sent.WriteString(http2.ClientPreface)
	return w
}

// read reads all that the client wrote, and checks that nothing of it is lost.
func (w *wire) read() {
	w.t.Helper()
	want := bytes.Clone(w.sent.Bytes())
	got := make([]byte, len(want))
	if _, err := io.ReadFull(w.countedConn, got); err != nil || !bytes.Equal(got, want) {
		w.t.Fatalf("error %v, or other bytes", err)
	}
}

// begin begins a call, as gRPC does. The returned function ends it.
func (w *wire) begin(id uint32) (*unread, func()) {
	w.t.Helper()
	if err := w.client.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: []byte("x"), EndHeaders: true}); err != nil {
		w.t.Fatal(err)
	}
	w.read()
	ctx, cancel := context.WithCancel(peer.NewContext(w.t.Context(), &peer.Peer{AuthInfo: AuthInfo{conn: w.countedConn}}))
	ctx, err := countCall(ctx, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return unreadFrom(ctx), func() { cancel(); synctest.Wait() }
}

// data sends n bytes in frames of at most 16 KiB, with padding.
func (w *wire) data(id uint32, n int) {
	w.t.Helper()
	w.sent.Grow(n + n/10)
	zeros := make([]byte, maxFrame)
	for n > 0 {
		piece := min(n, maxFrame-1-200)
		if err := w.client.WriteDataPadded(id, false, zeros[:piece], zeros[:n%200]); err != nil {
			w.t.Fatal(err)
		}
		n -= piece
	}
}

func whole(r io.Reader) io.Reader { return r }

// TestUnreadDataIsCounted sends messages in pieces of several sizes.
func TestUnreadDataIsCounted(t *testing.T) {
	for _, pieces := range []func(io.Reader) io.Reader{whole, iotest.OneByteReader, iotest.HalfReader} {
		synctest.Test(t, func(t *testing.T) {
			budget := newBudget()
			w := newWire(t, budget, "cni", false, pieces)
			want := func(n int, why string) {
				t.Helper()
				if w.sent.Len() > 0 {
					w.read()
				}
				if budget.total != n || budget.byPublisher["cni"] != n {
					t.Fatalf("%s: %d bytes are counted, %d of the publisher: want %d", why, budget.total, budget.byPublisher["cni"], n)
				}
			}
			first, endFirst := w.begin(1)
			w.data(1, 50_000)
			want(50_000, "half a message")
			_, endSecond := w.begin(3)
			w.data(3, 3)
			want(50_003, "a part of a length")
			w.data(1, 50_005)
			want(100_008, "the rest of the message")
			first.received(100_000)
			want(3, "the handler received it")
			w.data(99, 100)
			want(3, "a call that gRPC has refused")
			endSecond()
			want(0, "a call ends")
			w.data(3, 100)
			want(0, "what the client still sends")
			endFirst()
			first.received(10)
			if want(0, "the end"); len(budget.byPublisher) != 0 || len(w.calls) != 0 {
				t.Errorf("after the end %v and %v are left", budget.byPublisher, w.calls)
			}
		})
	}
}

// TestTooMuchIsIncomplete fills the limits of a publisher and of all.
func TestTooMuchIsIncomplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget := newBudget()
		var ends []func()
		// hold has a publisher hold three quarters of the largest message, or returns why its call ends.
		hold := func(publisher string, system bool) error {
			w := newWire(t, budget, publisher, system, whole)
			u, end := w.begin(1)
			ends = append(ends, end)
			w.data(1, MaxMessage*3/4)
			done := make(chan struct{})
			go func() {
				defer close(done)
				w.read()
			}()
			synctest.Wait()
			select {
			case err := <-u.limit():
				before := budget.total
				select {
				case <-done:
					t.Error("the connection is read before the call has ended")
				default:
				}
				if end(); u.bytes != 0 || budget.total > before {
					t.Error("a call that has ended holds bytes")
				}
				<-done
				return err
			case <-done:
				return nil
			}
		}
		refused := func(publisher, text string) {
			t.Helper()
			before := budget.total
			if err := hold(publisher, false); !errors.Is(err, errLimit) || !strings.Contains(err.Error(), text) {
				t.Fatalf("publisher %s: error %v: want %q", publisher, err, text)
			}
			if budget.total != before {
				t.Errorf("a call that has ended holds %d bytes", budget.total-before)
			}
		}
		for range 2 {
			if err := hold("a", false); err != nil {
				t.Fatal(err)
			}
		}
		refused("a", "messages of publisher a that are not complete have more than 33554432 bytes: send fewer at a time")
		for range 2 {
			for _, p := range []string{"b", "c", "d"} {
				if err := hold(p, false); err != nil {
					t.Fatal(err)
				}
			}
		}
		refused("e", "messages of all callers that are not complete have more than 100663296 bytes")
		if err := hold("services", true); err != nil {
			t.Errorf("a caller of the system: %v", err)
		}
		for _, end := range ends {
			end()
		}
		if budget.total != 0 {
			t.Errorf("at the end %d bytes are counted", budget.total)
		}
	})
}

// FuzzFrames feeds any bytes: gRPC gets them as they came, and no more is counted than arrived.
func FuzzFrames(f *testing.F) {
	f.Add([]byte("\x00\x00\x01\x01\x04\x00\x00\x00\x01x\x00\x00\x06\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x09a"))
	f.Add([]byte("\x00\x00\x05\x00\x08\x00\x00\x00\x01\xffabcd\x00\x00\x04\x08\x00\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		budget := newBudget()
		w := newWire(t, budget, "a", false, iotest.HalfReader)
		w.sent.Write(b)
		w.calls[1] = &unread{conn: w.countedConn, ctx: t.Context(), exceeded: make(chan error, 1)}
		got, _ := io.ReadAll(w.countedConn)
		if !strings.HasPrefix(http2.ClientPreface+string(b), string(got)) {
			t.Fatalf("%d bytes of %d came out as others", len(got), len(b))
		}
		if budget.total < 0 || budget.total > len(b) {
			t.Fatalf("%d bytes are counted of %d", budget.total, len(b))
		}
	})
}
