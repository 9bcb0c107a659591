package attr

import (
	"fmt"
	"math"
	"time"
)

// Field is an attribute and its variable.
type Field struct {
	typ  uint16
	to   any
	send bool
}

// Fields describe a message in the order of sending.
type Fields []Field

// Always returns a field that is always sent; see [Append] for to.
func Always(typ uint16, to any) Field { return Field{typ, to, true} }

// If returns a field that may be sent.
func If(send bool, typ uint16, to any) Field { return Field{typ, to, send} }

// Value has its own encoding.
type Value interface {
	AppendAttr(b []byte, typ uint16) ([]byte, error)
	ReadAttr(r *Reader) error
}

// Append appends the sent fields.
func (f Fields) Append(b []byte) (_ []byte, err error) {
	for i := range f {
		if !f[i].send {
			continue
		}
		if b, err = Append(b, f[i].typ, f[i].to); err != nil {
			return b, err
		}
	}
	return b, nil
}

// Read ignores unknown attributes.
func (f Fields) Read(b []byte) error {
	r := NewReader(b)
	for r.Next() {
		for i := range f {
			if f[i].typ&typeMask != r.typ {
				continue
			}
			if err := r.Into(f[i].to); err != nil {
				return err
			}
		}
	}
	return r.Err()
}

// Append appends a big-endian number, a bool as the lowest of 32 bits, a string with a NUL, bytes,
// milliseconds, nested Fields, or a [Value].
func Append(b []byte, typ uint16, v any) (_ []byte, err error) {
	switch v := v.(type) {
	case *uint8:
		return AppendUint8(b, typ, *v), nil
	case *uint16:
		return AppendUint16BE(b, typ, *v), nil
	case *uint32:
		return AppendUint32BE(b, typ, *v), nil
	case *int32:
		return AppendUint32BE(b, typ, uint32(*v)), nil
	case *uint64:
		return AppendUint64BE(b, typ, *v), nil
	case *bool:
		if *v {
			return AppendUint32BE(b, typ, 1), nil
		}
		return AppendUint32BE(b, typ, 0), nil
	case *string:
		return AppendString(b, typ, *v), nil
	case *[]byte:
		return AppendBytes(b, typ, *v), nil
	case *time.Duration:
		return AppendUint64BE(b, typ, uint64(v.Milliseconds())), nil
	case Fields:
		b, at := OpenNested(b, typ)
		if b, err = v.Append(b); err != nil {
			return b, err
		}
		return Close(b, at), nil
	case Value:
		return v.AppendAttr(b, typ)
	default:
		return b, fmt.Errorf("encode attribute %d: unknown type %T", typ, v)
	}
}

// Into is the inverse of [Append] for the current attribute.
func (r *Reader) Into(v any) error {
	switch v := v.(type) {
	case *uint8:
		*v = r.Uint8()
	case *uint16:
		*v = r.Uint16BE()
	case *uint32:
		*v = r.Uint32BE()
	case *int32:
		*v = int32(r.Uint32BE())
	case *uint64:
		*v = r.Uint64BE()
	case *bool:
		*v = r.Uint32BE()&1 != 0
	case *string:
		*v = r.Text()
	case *[]byte:
		*v = append([]byte(nil), r.value...)
	case *time.Duration:
		const longest = uint64(math.MaxInt64 / time.Millisecond)
		*v = time.Duration(min(r.Uint64BE(), longest)) * time.Millisecond
	case Fields:
		return v.Read(r.value)
	case Value:
		return v.ReadAttr(r)
	default:
		return fmt.Errorf("decode attribute %d: unknown type %T", r.typ, v)
	}
	return nil
}

// Unterminated is a string without a NUL.
type Unterminated string

// AppendAttr implements Value.
func (s *Unterminated) AppendAttr(b []byte, typ uint16) ([]byte, error) {
	return AppendBytes(b, typ, *s), nil
}

// ReadAttr implements Value.
func (s *Unterminated) ReadAttr(r *Reader) error {
	*s = Unterminated(r.Text())
	return nil
}

// Optional holds a pointer; nil without the attribute.
type Optional[T any] struct{ To **T }

// AppendAttr implements Value.
func (o Optional[T]) AppendAttr(b []byte, typ uint16) ([]byte, error) { return Append(b, typ, *o.To) }

// ReadAttr implements Value.
func (o Optional[T]) ReadAttr(r *Reader) error {
	*o.To = new(T)
	return r.Into(*o.To)
}

// Bits are the bits of a 32-bit number.
type Bits []Bit

// Bit is a variable and its bits.
type Bit struct {
	To   *bool
	Mask uint32
}

// AppendAttr implements Value.
func (s Bits) AppendAttr(b []byte, typ uint16) ([]byte, error) {
	var n uint32
	for _, bit := range s {
		if *bit.To {
			n |= bit.Mask
		}
	}
	return AppendUint32BE(b, typ, n), nil
}

// ReadAttr implements Value.
func (s Bits) ReadAttr(r *Reader) error {
	n := r.Uint32BE()
	for _, bit := range s {
		*bit.To = n&bit.Mask != 0
	}
	return nil
}
