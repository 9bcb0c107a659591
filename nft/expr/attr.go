package expr

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrAttr is the error of attributes that are no netlink attributes.
var ErrAttr = errors.New("malformed netlink attribute")

// marshalNamed puts an expression's name before its attributes.
func marshalNamed(name string, data []byte) []byte {
	b, at := openExpr(make([]byte, 0, 16+len(name)+len(data)), name)
	return CloseAttr(append(b, data...), at)
}

// Unmarshal splits what marshalNamed made.
func Unmarshal(b []byte) (name string, data []byte, err error) {
	err = EachAttr(b, func(typ uint16, v []byte) error {
		switch typ {
		case nftaExprName:
			if len(v) == 0 {
				return ErrAttr
			}
			name = string(v[:len(v)-1])
		case nftaExprData:
			data = v
		}
		return nil
	})
	if err != nil {
		return "", nil, fmt.Errorf("unmarshal expression: %w", err)
	}
	return name, data, nil
}

// AppendU32 appends a 32-bit attribute in network byte order.
func AppendU32(b []byte, typ uint16, v uint32) []byte {
	b = binary.NativeEndian.AppendUint16(b, 8)
	b = binary.NativeEndian.AppendUint16(b, typ)
	return binary.BigEndian.AppendUint32(b, v)
}

// appendData appends a nested NFTA_DATA_VALUE.
func appendData(b []byte, typ uint16, v []byte) []byte {
	b, at := OpenAttr(b, Nested|typ)
	return CloseAttr(AppendAttr(b, nftaDataValue, v), at)
}

// AttrU32 reads a 32-bit attribute.
func AttrU32(v []byte) (uint32, error) {
	if len(v) != 4 {
		return 0, ErrAttr
	}
	return binary.BigEndian.Uint32(v), nil
}

// AttrData reads a nested NFTA_DATA_VALUE.
func AttrData(v []byte) (data []byte, err error) {
	err = EachAttr(v, func(typ uint16, v []byte) error {
		if typ == nftaDataValue {
			data = append([]byte(nil), v...)
		}
		return nil
	})
	return data, err
}

// EachAttr calls f for each attribute of b.
func EachAttr(b []byte, f func(typ uint16, v []byte) error) error {
	for len(b) > 0 {
		if len(b) < 4 {
			return ErrAttr
		}
		n := int(binary.NativeEndian.Uint16(b))
		if n < 4 || n > len(b) {
			return ErrAttr
		}
		if err := f(binary.NativeEndian.Uint16(b[2:])&0x3fff, b[4:n]); err != nil {
			return err
		}
		b = b[min((n+3)&^3, len(b)):]
	}
	return nil
}
