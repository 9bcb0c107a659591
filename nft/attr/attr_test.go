package attr

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/mdlayher/netlink"

	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// all is a buffer with one attribute of each kind.
func all() []byte {
	b := AppendString(nil, 1, "four")
	b = AppendBytes(b, 2, []byte{1, 2, 3})
	b, nest := OpenNested(b, 3)
	b = AppendUint8(b, 4, 5)
	b = AppendUint16BE(b, 5, 6)
	b = AppendUint32BE(b, 6, 7)
	b = AppendUint64BE(b, 7, 8)
	b = AppendUint32NE(b, 8, 9)
	b = Close(b, nest)
	b, at := Open(b, 9)
	return Close(append(b, 1, 2, 3, 4, 5), at)
}

func TestRoundTrip(t *testing.T) {
	r := NewReader(all())
	if !r.Next() || r.Type() != 1 || r.Text() != "four" || !r.TextIs("four") || r.TextIs("fou") {
		t.Errorf("string = %d %q", r.Type(), r.Bytes())
	}
	if !r.Next() || r.Type() != 2 || !bytes.Equal(r.Bytes(), []byte{1, 2, 3}) || r.Text() != "\x01\x02\x03" {
		t.Errorf("bytes = %d %x", r.Type(), r.Bytes())
	}
	if !r.Next() || r.Type() != 3 {
		t.Fatalf("nested = %d %x", r.Type(), r.Bytes())
	}
	in := r.Nested()
	if !in.Next() || in.Uint8() != 5 || !in.Next() || in.Uint16BE() != 6 || !in.Next() || in.Uint32BE() != 7 ||
		!in.Next() || in.Uint64BE() != 8 || !in.Next() || in.Uint32NE() != 9 || in.Next() || in.Err() != nil {
		t.Errorf("numbers: %+v", in)
	}
	if !r.Next() || r.Type() != 9 || len(r.Bytes()) != 5 || r.Remaining() != 0 {
		t.Errorf("open = %d %x", r.Type(), r.Bytes())
	}
	if r.Next() || r.Err() != nil {
		t.Errorf("end: %+v", r)
	}
	if f, ok := Find(all(), 2); !ok || len(f.Bytes()) != 3 {
		t.Errorf("Find = %+v %v", f, ok)
	}
	if _, ok := Find(all(), 4); ok {
		t.Error("Find looked into a nested attribute")
	}
}

// The bytes are those of the netlink library.
func TestSameBytesAsLibrary(t *testing.T) {
	e := netlink.NewAttributeEncoder()
	e.String(1, "four")
	e.Bytes(2, []byte{1, 2, 3})
	e.Nested(3, func(e *netlink.AttributeEncoder) error {
		e.Uint8(4, 5)
		e.ByteOrder = binary.BigEndian
		e.Uint16(5, 6)
		e.Uint32(6, 7)
		e.Uint64(7, 8)
		e.ByteOrder = binary.NativeEndian
		e.Uint32(8, 9)
		return nil
	})
	e.Bytes(9, []byte{1, 2, 3, 4, 5})
	want := nfttest.Must(e.Encode())
	if got := all(); !bytes.Equal(got, want) {
		t.Errorf("got  %x\nwant %x", got, want)
	}
}

func TestMalformed(t *testing.T) {
	for _, b := range [][]byte{{1}, {3, 0, 1, 0}, {9, 0, 1, 0, 0, 0, 0, 0}, {0, 0, 0, 0}} {
		r := NewReader(b)
		for r.Next() {
		}
		if r.Err() == nil {
			t.Errorf("attributes %x were accepted", b)
		}
	}
	for name, read := range map[string]func(*Reader){
		"Uint8":    func(r *Reader) { r.Uint8() },
		"Uint16BE": func(r *Reader) { r.Uint16BE() },
		"Uint32BE": func(r *Reader) { r.Uint32BE() },
		"Uint64BE": func(r *Reader) { r.Uint64BE() },
		"Uint32NE": func(r *Reader) { r.Uint32NE() },
	} {
		r, _ := Find(AppendBytes(nil, 1, []byte{1, 2, 3}), 1)
		if read(&r); r.Err() == nil {
			t.Errorf("%s accepted three bytes", name)
		}
	}
}

// FuzzReader checks that a Reader never panics, and that what it read can be written.
func FuzzReader(f *testing.F) {
	f.Add(all())
	f.Add(all()[:30])
	f.Fuzz(func(t *testing.T, b []byte) {
		var out []byte
		r := NewReader(b)
		for r.Next() {
			r.Uint8()
			r.Uint16BE()
			r.Uint32BE()
			r.Uint64BE()
			r.Uint32NE()
			_ = r.Text()
			for in := r.Nested(); in.Next(); {
			}
			out = AppendBytes(out, r.Type(), r.Bytes())
		}
		again := NewReader(out)
		for r := NewReader(b); r.Next(); {
			if !again.Next() || again.Type() != r.Type() || !bytes.Equal(again.Bytes(), r.Bytes()) {
				t.Fatalf("read %d %x, wrote %d %x", r.Type(), r.Bytes(), again.Type(), again.Bytes())
			}
		}
	})
}

// TestTooLong tests that no attribute gets a length that is not its own.
func TestTooLong(t *testing.T) {
	text := strings.Repeat("x", MaxLen-HeaderLen+1)
	for name, add := range map[string]func(n int){
		"bytes":  func(n int) { AppendBytes(nil, 1, text[:n]) },
		"string": func(n int) { AppendString(nil, 1, text[:n-1]) },
		"nested": func(n int) { b, at := OpenNested(nil, 1); Close(append(b, text[:n]...), at) },
	} {
		for n, want := range map[int]bool{MaxLen - HeaderLen: false, MaxLen - HeaderLen + 1: true} {
			err := func() (err error) {
				defer func() { err, _ = recover().(error) }()
				add(n)
				return nil
			}()
			if got := errors.As(err, new(*TooLongError)); got != want {
				t.Errorf("%s with %d bytes of payload: error %v, want one: %t", name, n, err, want)
			}
		}
	}
}

// message has a field of each type.
type message struct {
	A uint8
	B uint16
	C uint32
	D *uint32
	E int32
	F uint64
	G bool
	H string
	I []byte
	J time.Duration
	K Unterminated
	L uint32
	M bool
	N bool
}

func (m *message) fields() Fields {
	return Fields{
		Always(1, &m.A), Always(2, &m.B), Always(3, &m.C), If(m.D != nil, 4, Optional[uint32]{&m.D}), Always(5, &m.E), Always(6, &m.F),
		Always(7, &m.G), Always(8, &m.H), Always(9, &m.I), Always(10, &m.J), Always(11, &m.K),
		Always(12, Fields{If(m.L != 0, 1, &m.L)}), Always(13, Bits{{&m.M, 3}, {&m.N, 4}}),
	}
}

func TestFields(t *testing.T) {
	seven := uint32(7)
	for _, want := range []message{
		{},
		{1, 2, 3, &seven, -5, 6, true, "eight", []byte{9}, 10 * time.Millisecond, "eleven", 12, true, false},
		{E: math.MinInt32, F: math.MaxUint64, J: time.Hour, N: true},
	} {
		b := nfttest.Must(want.fields().Append(nil))
		var got message
		if err := got.fields().Read(AppendUint8(b, 99, 1)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("read %+v, %v: want %+v", got, err, want)
		}
		for n := range b {
			_ = new(message).fields().Read(b[:n]) // must not panic
		}
	}
	var long time.Duration
	if err := (Fields{Always(1, &long)}).Read(AppendUint64BE(nil, 1, math.MaxUint64)); err != nil || long < 100*365*24*time.Hour {
		t.Errorf("the longest time reads as %s, %v", long, err)
	}
}

func TestFieldErrors(t *testing.T) {
	unknown := Fields{Always(1, 7)}
	if _, err := unknown.Append(nil); err == nil {
		t.Error("an int was appended")
	}
	if _, err := (Fields{Always(1, unknown)}).Append(nil); err == nil {
		t.Error("a nested int was appended")
	}
	if err := unknown.Read(AppendUint8(nil, 1, 1)); err == nil {
		t.Error("an int was read")
	}
	var n uint32
	nested := Fields{Always(1, Fields{Always(2, &n)})}
	for _, b := range [][]byte{{1}, AppendUint8(nil, 1, 1), AppendBytes(nil, 1, AppendUint8(nil, 2, 1))} {
		if err := nested.Read(b); !errors.Is(err, ErrMalformed) {
			t.Errorf("%x: %v, want ErrMalformed", b, err)
		}
	}
}
