package compile

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// errAttr is the error of attributes that are no netlink attributes.
var errAttr = errors.New("malformed netlink attribute")

// marshalNamed puts an expression's name before its attributes.
func marshalNamed(name string, data []byte) []byte {
	b, at := openExpr(make([]byte, 0, 16+len(name)+len(data)), name)
	return closeAttr(append(b, data...), at)
}

// unmarshalNamed splits what marshalNamed made.
func unmarshalNamed(b []byte) (name string, data []byte, err error) {
	err = eachAttr(b, func(typ uint16, v []byte) error {
		switch typ {
		case nftaExprName:
			if len(v) == 0 {
				return errAttr
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

// appendU32 appends a 32-bit attribute in network byte order.
func appendU32(b []byte, typ uint16, v uint32) []byte {
	b = binary.NativeEndian.AppendUint16(b, 8)
	b = binary.NativeEndian.AppendUint16(b, typ)
	return binary.BigEndian.AppendUint32(b, v)
}

// appendData appends a nested NFTA_DATA_VALUE.
func appendData(b []byte, typ uint16, v []byte) []byte {
	b, at := openAttr(b, nlaNested|typ)
	return closeAttr(appendAttr(b, nftaDataValue, v), at)
}

// attrU32 reads a 32-bit attribute.
func attrU32(v []byte) (uint32, error) {
	if len(v) != 4 {
		return 0, errAttr
	}
	return binary.BigEndian.Uint32(v), nil
}

// attrData reads a nested NFTA_DATA_VALUE.
func attrData(v []byte) (data []byte, err error) {
	err = eachAttr(v, func(typ uint16, v []byte) error {
		if typ == nftaDataValue {
			data = append([]byte(nil), v...)
		}
		return nil
	})
	return data, err
}

// eachAttr calls f for each attribute of b.
func eachAttr(b []byte, f func(typ uint16, v []byte) error) error {
	for len(b) > 0 {
		if len(b) < 4 {
			return errAttr
		}
		n := int(binary.NativeEndian.Uint16(b))
		if n < 4 || n > len(b) {
			return errAttr
		}
		if err := f(binary.NativeEndian.Uint16(b[2:])&0x3fff, b[4:n]); err != nil {
			return err
		}
		b = b[min((n+3)&^3, len(b)):]
	}
	return nil
}
