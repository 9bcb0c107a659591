package attr

import (
	"errors"
	"math"
	"reflect"
	"testing"
	"time"
)

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
		b, err := want.fields().Append(nil)
		if err != nil {
			t.Fatal(err)
		}
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
