package server_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"golang.org/x/time/rate"
	"google.golang.org/protobuf/proto"

	"github.com/weft-proxy/weft/aggregator"
	"github.com/weft-proxy/weft/aggregator/aggregatortest"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
)

// raw is a gRPC client by hand: it does what no library would.
type raw struct {
	t      testing.TB
	conn   net.Conn
	write  *http2.Framer
	frames *http2.Framer
	next   uint32
	// initial is the window that a stream has to begin with.
	initial int

	mu sync.Mutex
	// room is what the server lets the client send, on the connection (0) and
	// on each stream.
	room map[uint32]int
	// status is the gRPC status of each stream that has ended.
	status map[uint32]string
	// gone is true once nothing more is to be read.
	gone bool
}

// dialRaw connects and says hello with these settings. It reads nothing.
func dialRaw(t testing.TB, socket string, settings ...http2.Setting) *raw {
	t.Helper()
	conn, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	return rawOn(t, conn, settings...)
}

// rawOn says hello on a connection.
func rawOn(t testing.TB, conn net.Conn, settings ...http2.Setting) *raw {
	t.Helper()
	r := &raw{t: t, conn: conn, write: http2.NewFramer(conn, nil), frames: http2.NewFramer(nil, conn), next: 1, initial: 65535, room: map[uint32]int{0: 65535}, status: map[uint32]string{}}
	r.frames.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := conn.Write([]byte(http2.ClientPreface)); err != nil {
		t.Fatal(err)
	}
	if err := r.write.WriteSettings(settings...); err != nil {
		t.Fatal(err)
	}
	return r
}

// open begins a call and returns its stream.
func (r *raw) open(method string) uint32 {
	r.t.Helper()
	var b bytes.Buffer
	enc := hpack.NewEncoder(&b)
	for _, h := range [][2]string{
		{":method", "POST"}, {":scheme", "http"}, {":path", method}, {":authority", "localhost"},
		{"content-type", "application/grpc"}, {"te", "trailers"}, {"weft-publisher", "raw"},
	} {
		if err := enc.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]}); err != nil {
			r.t.Fatal(err)
		}
	}
	id := r.next
	r.next += 2
	r.mu.Lock()
	r.room[id] = r.initial
	r.mu.Unlock()
	if err := r.write.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: b.Bytes(), EndHeaders: true}); err != nil {
		r.t.Fatal(err)
	}
	return id
}

// message returns a message as gRPC frames it.
func message(m proto.Message) []byte {
	b, err := proto.Marshal(m)
	if err != nil {
		panic(err)
	}
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(b))), b...)
}

// send sends a part of a message, regardless of flow control.
func (r *raw) send(id uint32, b []byte, end bool) error {
	for len(b) > 16<<10 {
		if err := r.write.WriteData(id, false, b[:16<<10]); err != nil {
			return err
		}
		b = b[16<<10:]
	}
	return r.write.WriteData(id, end, b)
}

// sendWithin sends if there is room for it.
func (r *raw) sendWithin(id uint32, b []byte) (ok bool, _ error) {
	r.mu.Lock()
	if r.gone || r.status[id] != "" || r.room[0] < len(b) || r.room[id] < len(b) {
		gone := r.gone
		r.mu.Unlock()
		if gone {
			return false, net.ErrClosed
		}
		return false, nil
	}
	r.room[0] -= len(b)
	r.room[id] -= len(b)
	r.mu.Unlock()
	return true, r.send(id, b, false)
}

// read reads frames until the connection ends, or stop says so.
func (r *raw) read(stop func(http2.Frame) bool) {
	for {
		f, err := r.frames.ReadFrame()
		r.mu.Lock()
		if err != nil {
			r.gone = true
			r.mu.Unlock()
			return
		}
		switch f := f.(type) {
		case *http2.SettingsFrame:
			if v, ok := f.Value(http2.SettingInitialWindowSize); ok {
				for id := range r.room {
					if id != 0 {
						r.room[id] += int(v) - r.initial
					}
				}
				r.initial = int(v)
			}
		case *http2.WindowUpdateFrame:
			r.room[f.StreamID] += int(f.Increment)
		case *http2.MetaHeadersFrame:
			for _, h := range f.Fields {
				if h.Name == "grpc-status" {
					r.status[f.StreamID] = h.Value
				}
			}
		}
		r.mu.Unlock()
		if stop != nil && stop(f) {
			return
		}
	}
}

// ended returns the gRPC status of a stream that has ended, or "".
func (r *raw) ended(id uint32) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status[id]
}

// headers is a stop for read: n calls have been accepted.
func headers(n int) func(http2.Frame) bool {
	return func(f http2.Frame) bool {
		if _, ok := f.(*http2.MetaHeadersFrame); ok {
			n--
		}
		return n == 0
	}
}

// unlimited starts a daemon without a commit rate: what is measured is what
// callers do to each other.
func unlimited(t testing.TB) *aggregatortest.Daemon {
	return aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: &aggregatortest.Kernel{}, Rate: rate.Inf, Burst: 1}})
}

// neighbour is a well-behaved publisher beside the others.
type neighbour struct{ session *client.Session }

func newNeighbour(t testing.TB, d *aggregatortest.Daemon) *neighbour {
	s := d.Dial(t, "neighbour").Session(client.SessionConfig{Snapshot: func(string) *weftv1.Fragment { return neighbourFragment() }})
	t.Cleanup(func() { _ = s.Close() })
	if _, err := s.Put(aggregatortest.Context(t), neighbourFragment()); err != nil {
		t.Fatal(err)
	}
	return &neighbour{s}
}

func neighbourFragment() *weftv1.Fragment {
	f := table()
	f.Name, f.Tables[0].Name = "beside", "beside"
	return f
}

// maxDelay bounds the slowest update of a neighbour. It is generous: the machine may
// be busy with other tests. What it catches is waiting for somebody else.
const maxDelay = 5 * time.Second

// works makes updates, says how long they took, and fails if one took too long.
func (n *neighbour) works(t testing.TB, when string) {
	t.Helper()
	ctx := aggregatortest.Context(t)
	var took []time.Duration
	for i := range 50 {
		began := time.Now()
		_, err := n.session.Patch(ctx, &weftv1.Patch{Fragment: "beside", Tables: []*weftv1.TablePatch{{Family: "inet", Name: "beside", Elements: []*weftv1.ElementPatch{{
			Set: "blocked", Add: []*weftv1.Element{{Key: fmt.Sprintf("10.1.0.%d", i)}}, Remove: []string{fmt.Sprintf("10.1.0.%d", i-1)},
		}}}}})
		if i == 0 {
			// There is no 10.1.0.-1.
			continue
		}
		if err != nil {
			t.Fatalf("%s: update %d of the neighbour: %v", when, i, err)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	t.Logf("%s: updates of the neighbour take %v (median), %v (99 %%), %v (most)", when, took[len(took)/2], took[len(took)*99/100], took[len(took)-1])
	if most := took[len(took)-1]; most > maxDelay {
		t.Errorf("%s: an update of the neighbour took %v", when, most)
	}
}
