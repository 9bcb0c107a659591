package attr

import (
	"encoding/binary"
	"fmt"
	"math"

	"golang.org/x/sys/unix"
)

const (
	// HeaderLen is a header's size.
	HeaderLen = unix.NLA_HDRLEN
	// MaxLen includes the header.
	MaxLen = math.MaxUint16
)

const zeros = "\x00\x00\x00\x00"

// TooLongError is the panic value beyond MaxLen: the kernel would read the payload as attributes.
type TooLongError struct {
	Len int
}

// Error implements error.
func (e *TooLongError) Error() string {
	return fmt.Sprintf("netlink attribute has %d bytes: want at most %d", e.Len, MaxLen)
}

func appendHeader(b []byte, typ uint16, n int) []byte {
	if n > MaxLen-HeaderLen {
		panic(&TooLongError{HeaderLen + n})
	}
	b = binary.NativeEndian.AppendUint16(b, uint16(HeaderLen+n))
	return binary.NativeEndian.AppendUint16(b, typ)
}

// pad aligns n bytes to 4. The early return is cheaper than an empty append.
func pad(b []byte, n int) []byte {
	if n&3 == 0 {
		return b
	}
	return append(b, zeros[:-n&3]...)
}

// AppendBytes appends v.
func AppendBytes[T ~string | ~[]byte](b []byte, typ uint16, v T) []byte {
	return pad(append(appendHeader(b, typ, len(v)), v...), len(v))
}

// AppendString appends s and a terminating NUL.
func AppendString(b []byte, typ uint16, s string) []byte {
	b = append(appendHeader(b, typ, len(s)+1), s...)
	return append(b, zeros[:1+-(len(s)+1)&3]...)
}

// AppendUint8 appends a byte.
func AppendUint8(b []byte, typ uint16, v uint8) []byte {
	return append(appendHeader(b, typ, 1), v, 0, 0, 0)
}

// AppendUint16BE appends a big-endian number.
func AppendUint16BE(b []byte, typ, v uint16) []byte {
	return append(binary.BigEndian.AppendUint16(appendHeader(b, typ, 2), v), 0, 0)
}

// AppendUint32BE appends a big-endian number.
func AppendUint32BE(b []byte, typ uint16, v uint32) []byte {
	return binary.BigEndian.AppendUint32(appendHeader(b, typ, 4), v)
}

// AppendUint64BE appends a big-endian number.
func AppendUint64BE(b []byte, typ uint16, v uint64) []byte {
	return binary.BigEndian.AppendUint64(appendHeader(b, typ, 8), v)
}

// AppendUint32NE appends a native-endian number.
func AppendUint32NE(b []byte, typ uint16, v uint32) []byte {
	return binary.NativeEndian.AppendUint32(appendHeader(b, typ, 4), v)
}

// Open begins an attribute at offset at.
func Open(b []byte, typ uint16) (out []byte, at int) {
	return appendHeader(b, typ, 0), len(b)
}

// OpenNested adds NLA_F_NESTED.
func OpenNested(b []byte, typ uint16) (out []byte, at int) {
	return Open(b, typ|unix.NLA_F_NESTED)
}

// Close ends and pads the attribute at offset at.
func Close(b []byte, at int) []byte {
	n := len(b) - at
	if n > MaxLen {
		panic(&TooLongError{n})
	}
	binary.NativeEndian.PutUint16(b[at:], uint16(n))
	return pad(b, n)
}
