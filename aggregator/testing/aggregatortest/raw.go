package aggregatortest

import (
	"bytes"
	"encoding/binary"
	"net"
	"sync"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/protobuf/proto"
)

// Raw is a low-level gRPC client for behaviour of no library.
type Raw struct {
	t         testing.TB
	conn      net.Conn
	write     *http2.Framer
	frames    *http2.Framer
	Publisher string
	Next      uint32
	// window of a stream
	initial int

	mu sync.Mutex
	// bytes that the server accepts, by stream; 0 is the connection
	room map[uint32]int
	// of each ended stream
	status map[uint32]string
	// after the last read
	gone bool
}

// DialRaw connects and sends the preface. It does not read.
func DialRaw(t testing.TB, socket string, settings ...http2.Setting) *Raw {
	t.Helper()
	conn, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	return NewRaw(t, conn, settings...)
}

// NewRaw sends the preface on a connection.
func NewRaw(t testing.TB, conn net.Conn, settings ...http2.Setting) *Raw {
	t.Helper()
	r := &Raw{t: t, conn: conn, write: http2.NewFramer(conn, nil), frames: http2.NewFramer(nil, conn), Publisher: "raw", Next: 1, initial: 65535, room: map[uint32]int{0: 65535}, status: map[uint32]string{}}
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

// Open begins a call and returns its stream.
func (r *Raw) Open(method string) uint32 {
	r.t.Helper()
	var b bytes.Buffer
	enc := hpack.NewEncoder(&b)
	for _, h := range [][2]string{
		{":method", "POST"}, {":scheme", "http"}, {":path", method}, {":authority", "localhost"},
		{"content-type", "application/grpc"}, {"te", "trailers"}, {"weft-publisher", r.Publisher},
	} {
		if err := enc.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]}); err != nil {
			r.t.Fatal(err)
		}
	}
	id := r.Next
	r.Next += 2
	r.mu.Lock()
	r.room[id] = r.initial
	r.mu.Unlock()
	if err := r.write.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: b.Bytes(), EndHeaders: true}); err != nil {
		r.t.Fatal(err)
	}
	return id
}

// Message returns a message as gRPC frames it.
func Message(m proto.Message) []byte {
	b, err := proto.Marshal(m)
	if err != nil {
		panic(err)
	}
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(b))), b...)
}

// Send sends a part of a message, regardless of flow control.
func (r *Raw) Send(id uint32, b []byte, end bool) error {
	for len(b) > 16<<10 {
		if err := r.write.WriteData(id, false, b[:16<<10]); err != nil {
			return err
		}
		b = b[16<<10:]
	}
	return r.write.WriteData(id, end, b)
}

// SendWithin sends if there is room.
func (r *Raw) SendWithin(id uint32, b []byte) (ok bool, _ error) {
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
	return true, r.Send(id, b, false)
}

// Read reads until the connection ends or stop returns true.
func (r *Raw) Read(stop func(http2.Frame) bool) {
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

// Ended returns the gRPC status of an ended stream, or "".
func (r *Raw) Ended(id uint32) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status[id]
}

// Gone reports whether the connection has ended, after Read.
func (r *Raw) Gone() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.gone
}

// Connection returns the connection.
func (r *Raw) Connection() net.Conn { return r.conn }

// Frames returns the writer of frames, to use while no method writes.
func (r *Raw) Frames() *http2.Framer { return r.write }

// Headers is a stop for Read: n calls have been accepted.
func Headers(n int) func(http2.Frame) bool {
	return func(f http2.Frame) bool {
		if _, ok := f.(*http2.MetaHeadersFrame); ok {
			n--
		}
		return n == 0
	}
}
