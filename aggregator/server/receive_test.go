package server

import (
	"bytes"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/http2"

	"github.com/weft-proxy/weft/aggregator/access"
)

// wire is a connection of which the test writes both directions.
type wire struct {
	t *testing.T
	*countedConn
	in     *bytes.Buffer
	client *http2.Framer
	server *http2.Framer
}

// wireConn reads from one buffer and writes to another.
type wireConn struct {
	socketConn
	in, out *bytes.Buffer
}

func (c *wireConn) Read(b []byte) (int, error)  { return c.in.Read(b) }
func (c *wireConn) Write(b []byte) (int, error) { return c.out.Write(b) }
func (c *wireConn) Close() error                { return nil }

func newWire(t *testing.T, budget *receiving, publisher string, system bool) *wire {
	t.Helper()
	w := &wire{t: t, in: &bytes.Buffer{}}
	out := &bytes.Buffer{}
	limited := &limitedConn{socketConn: &wireConn{in: w.in, out: out}, limits: newConnections(0, 0, nil), peer: access.Peer{}, identified: func() {}}
	w.countedConn = newCountedConn(limited, budget, publisher, system)
	w.client, w.server = http2.NewFramer(w.in, nil), http2.NewFramer(w.countedConn, out)
	w.client.AllowIllegalWrites = true
	w.in.WriteString(http2.ClientPreface)
	return w
}

// received has the server read all that the client wrote, n bytes at a time.
func (w *wire) received(n int) error {
	w.t.Helper()
	b := make([]byte, n)
	for {
		if _, err := w.Read(b); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// begin begins a call.
func (w *wire) begin(id uint32, end bool) {
	w.t.Helper()
	if err := w.client.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: []byte("x"), EndHeaders: true, EndStream: end}); err != nil {
		w.t.Fatal(err)
	}
}

// data sends bytes in frames of at most 16 KiB, with padding.
func (w *wire) data(id uint32, b []byte) {
	w.t.Helper()
	for len(b) > 0 {
		n := min(len(b), 16<<10-1-200)
		if err := w.client.WriteDataPadded(id, false, b[:n], make([]byte, n%200)); err != nil {
			w.t.Fatal(err)
		}
		b = b[n:]
	}
}

// bytesOf returns a message of n bytes with its prefix.
func bytesOf(n int) []byte {
	return append([]byte{0, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}, make([]byte, n)...)
}

func newReceiving() *receiving { return &receiving{byPublisher: counts[string]{}} }

// TestIncompleteMessagesAreCounted sends messages in pieces of all sizes.
func TestIncompleteMessagesAreCounted(t *testing.T) {
	for _, piece := range []int{1, 7, 4096, 1 << 20} {
		budget := newReceiving()
		w := newWire(t, budget, "cni", false)
		want := func(n int, why string) {
			t.Helper()
			if err := w.received(piece); err != nil {
				t.Fatal(err)
			}
			if budget.total != n || budget.byPublisher["cni"] != n {
				t.Fatalf("read by %d, %s: %d bytes are counted, %d of the publisher: want %d", piece, why, budget.total, budget.byPublisher["cni"], n)
			}
		}
		w.begin(1, false)
		w.data(1, bytesOf(100_000)[:50_000])
		want(50_000, "half a message")
		w.begin(3, false)
		w.data(3, bytesOf(10_000)[:3])
		want(50_003, "a part of a length")
		w.data(1, bytesOf(100_000)[50_000:])
		want(window+3, "the rest of the message")
		w.data(3, bytesOf(10_000)[3:])
		want(window, "a small message")
		w.begin(5, true)
		w.data(5, bytesOf(100))
		w.data(99, bytesOf(100))
		want(window, "a stream that has ended, and one that has not begun")
		if err := w.client.WriteRSTStream(3, http2.ErrCodeCancel); err != nil {
			t.Fatal(err)
		}
		want(window, "the client gave a call up")
		if err := w.server.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte("x"), EndHeaders: true}); err != nil {
			t.Fatal(err)
		}
		want(window, "the server's first headers")
		if err := w.server.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte("x"), EndHeaders: true, EndStream: true}); err != nil {
			t.Fatal(err)
		}
		want(0, "the server's last headers")
		w.data(1, bytesOf(100))
		want(0, "what the client still sends")
		w.begin(7, false)
		w.data(7, bytesOf(1000)[:10])
		want(10, "another call")
		_ = w.Close()
		if len(budget.byPublisher) != 0 || budget.total != 0 {
			t.Errorf("after the end %d bytes are counted", budget.total)
		}
	}
}

// TestReadMessagesAreGivenBack has a publisher with more streams than the limit has windows, whose handlers have read all
// that was sent: gRPC keeps nothing of it, and so nothing is counted.
func TestReadMessagesAreGivenBack(t *testing.T) {
	budget := newReceiving()
	const connections, calls = 3 * maxReceivingPerPublisher / window / maxStreams, maxStreams
	for range connections {
		w := newWire(t, budget, "cni", false)
		for id := uint32(1); id < 2*calls; id += 2 {
			w.begin(id, false)
			for _, n := range []int{100, 30_000, 200_000, 3, 1000} {
				w.data(id, bytesOf(n))
				if err := w.received(4096); err != nil {
					t.Fatalf("after %d bytes of %d streams are counted: %v", budget.total, id/2, err)
				}
				// gRPC grants what its handler has read once that is a quarter of the window.
				m := w.messages[id]
				if read := m.arrived - m.granted; read >= window/4 {
					if err := w.server.WriteWindowUpdate(id, uint32(read)); err != nil { //nolint:gosec // a size
						t.Fatal(err)
					}
				}
			}
		}
		if budget.total != 0 {
			t.Fatalf("%d bytes are counted", budget.total)
		}
		// What has not been read is counted as before.
		w.data(1, bytesOf(50_000))
		if err := w.received(4096); err != nil || budget.total < 50_000-window/4 {
			t.Fatalf("%d bytes are counted of a message that was not read, error %v", budget.total, err)
		}
		if err := w.server.WriteWindowUpdate(1, 50_000); err != nil {
			t.Fatal(err)
		}
		defer w.Close()
	}
}

// TestTooMuchIsIncomplete exceeds the limits of one publisher and of all.
func TestTooMuchIsIncomplete(t *testing.T) {
	budget := newReceiving()
	var all []*wire
	// hold has a publisher hold three quarters of the largest message.
	hold := func(publisher string, system bool) error {
		w := newWire(t, budget, publisher, system)
		all = append(all, w)
		w.begin(1, false)
		for piece := range slices.Chunk(bytesOf(MaxMessage)[:MaxMessage*3/4], 16<<10) {
			if err := w.client.WriteData(1, false, piece); err != nil {
				t.Fatal(err)
			}
		}
		return w.received(64 << 10)
	}
	refused := func(publisher, text string) {
		t.Helper()
		before := budget.total
		if err := hold(publisher, false); !errors.Is(err, errLimit) || !strings.Contains(err.Error(), text) {
			t.Fatalf("publisher %s: error %v: want %q", publisher, err, text)
		}
		if budget.total != before {
			t.Errorf("a connection that has ended holds %d bytes", budget.total-before)
		}
		w := all[len(all)-1]
		frame, err := w.server.ReadFrame()
		away, ok := frame.(*http2.GoAwayFrame)
		if err != nil || !ok || !strings.Contains(string(away.DebugData()), text) {
			t.Errorf("the client reads %v, error %v: want GOAWAY with the reason", frame, err)
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
	for _, w := range all {
		_ = w.Close()
	}
	if budget.total != 0 {
		t.Errorf("at the end %d bytes are counted", budget.total)
	}
}

// TestTooManyCallsBegin has a client begin calls that the server has not refused yet.
func TestTooManyCallsBegin(t *testing.T) {
	w := newWire(t, newReceiving(), "a", false)
	for id := range uint32(3 * maxStreams) {
		w.begin(2*id+1, false)
	}
	if err := w.received(4096); !errors.Is(err, errLimit) {
		t.Errorf("error %v: want errLimit", err)
	}
}

// FuzzFrames feeds any bytes in both directions, in any pieces: what is counted is
// never negative, and nothing after the end.
func FuzzFrames(f *testing.F) {
	f.Add([]byte("\x00\x00\x01\x01\x04\x00\x00\x00\x01x\x00\x00\x06\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x09a"), 3)
	f.Fuzz(func(t *testing.T, b []byte, piece int) {
		budget := newReceiving()
		w := newWire(t, budget, "a", false)
		w.in.Write(b)
		err := w.received(1 + (piece & 0xff))
		if _, werr := w.Write(b); werr != nil {
			t.Fatal(werr)
		}
		if budget.total < 0 || budget.total > len(b) || err != nil && !errors.Is(err, errLimit) {
			t.Fatalf("%d bytes are counted of %d, error %v", budget.total, len(b), err)
		}
		if err := w.Close(); err != nil || budget.total != 0 {
			t.Fatalf("after the end %d bytes are counted, error %v", budget.total, err)
		}
	})
}

var _ net.Conn = (*countedConn)(nil)
