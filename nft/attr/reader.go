package attr

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// ErrMalformed means that an attribute exceeds the buffer or has a wrong size.
var ErrMalformed = errors.New("malformed netlink message")

// without NLA_F_NESTED and NLA_F_NET_BYTEORDER
const typeMask = 0x3fff

// Reader iterates over attributes:
//
//	for r := attr.NewReader(b); r.Next(); {
//		switch r.Type() { ... }
//	}
type Reader struct {
	rest      []byte
	typ       uint16
	value     []byte
	malformed bool
}

// NewReader returns a Reader of b, which is not copied.
func NewReader(b []byte) Reader { return Reader{rest: b} }

// Find returns a Reader at the first attribute of a type. If ok is false, Err says whether b is
// malformed.
func Find(b []byte, typ uint16) (r Reader, ok bool) {
	for r = NewReader(b); r.Next(); {
		if r.typ == typ {
			return r, true
		}
	}
	return r, false
}

// Next returns false at the end or at a malformed attribute. A number of the wrong size does not
// end the iteration.
func (r *Reader) Next() bool {
	if len(r.rest) == 0 {
		return false
	}
	if len(r.rest) < HeaderLen {
		r.malformed = true
		return false
	}
	n := int(binary.NativeEndian.Uint16(r.rest))
	if n < HeaderLen || n > len(r.rest) {
		r.malformed = true
		return false
	}
	r.typ = binary.NativeEndian.Uint16(r.rest[2:]) & typeMask
	r.value = r.rest[HeaderLen:n]
	r.rest = r.rest[min((n+3)&^3, len(r.rest)):]
	return true
}

// Err returns ErrMalformed for a malformed attribute or number.
func (r *Reader) Err() error {
	if r.malformed {
		return ErrMalformed
	}
	return nil
}

// Remaining returns the bytes after the current attribute.
func (r *Reader) Remaining() int { return len(r.rest) }

// Type returns the type without flags.
func (r *Reader) Type() uint16 { return r.typ }

// Bytes returns the payload, a part of the buffer.
func (r *Reader) Bytes() []byte { return r.value }

// Text ends at the first NUL.
func (r *Reader) Text() string { return string(r.text()) }

// TextIs is Text() == s without an allocation.
func (r *Reader) TextIs(s string) bool { return string(r.text()) == s }

func (r *Reader) text() []byte {
	if i := bytes.IndexByte(r.value, 0); i >= 0 {
		return r.value[:i]
	}
	return r.value
}

// Nested returns a Reader of nested attributes. r.Err does not report its errors.
func (r *Reader) Nested() Reader { return NewReader(r.value) }

func (r *Reader) number(n int) []byte {
	if len(r.value) == n {
		return r.value
	}
	r.malformed = true
	return make([]byte, n)
}

// Uint8 returns the payload. A wrong size returns 0, and Err is set, also below.
func (r *Reader) Uint8() uint8 { return r.number(1)[0] }

// Uint16BE returns a big-endian payload.
func (r *Reader) Uint16BE() uint16 { return binary.BigEndian.Uint16(r.number(2)) }

// Uint32BE returns a big-endian payload.
func (r *Reader) Uint32BE() uint32 { return binary.BigEndian.Uint32(r.number(4)) }

// Uint64BE returns a big-endian payload.
func (r *Reader) Uint64BE() uint64 { return binary.BigEndian.Uint64(r.number(8)) }

// Uint32NE returns a native-endian payload.
func (r *Reader) Uint32NE() uint32 { return binary.NativeEndian.Uint32(r.number(4)) }
