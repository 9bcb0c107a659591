package expr

import (
	"encoding/binary"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/attr"
	"github.com/weft-proxy/weft/nft/selector"
)

// table describes an expression: it drives both marshalling and unmarshalling.
type table struct {
	name       string
	attributes []attribute
}

// attribute is one attribute of an expression.
type attribute struct {
	// typ is the attribute's number (NFTA_*).
	typ uint16
	// to points to the field that the attribute holds. The type of the pointer
	// says how it is encoded: numbers and names as usual in nf_tables, a bool as
	// 32 bits of flags of which the lowest is the only one, a []byte as
	// NFTA_DATA_VALUE, and the types below.
	to any
	// send is false if nft(8) leaves out the attribute.
	send bool
}

// always marks the attributes that nft(8) sends with every expression.
const always = true

// Types of attributes with an encoding of their own.
type (
	// setID is the number of an anonymous set within its transaction, or 0.
	setID uint32
	// unterminated is a name that nft(8) sends without its NUL.
	unterminated string
	// nativeData is a NFTA_DATA_VALUE of 32 bits in the machine's byte order.
	nativeData uint32
)

// attribute appends an attribute.
func (w *writer) attribute(a attribute) error {
	switch v := a.to.(type) {
	case *bool:
		w.b = attr.AppendUint32BE(w.b, a.typ, flag(*v, 1))
	case *uint8:
		w.b = attr.AppendUint8(w.b, a.typ, *v)
	case *uint16:
		w.b = attr.AppendUint16BE(w.b, a.typ, *v)
	case *uint32:
		w.b = attr.AppendUint32BE(w.b, a.typ, *v)
	case *selector.Direction:
		w.b = attr.AppendUint8(w.b, a.typ, uint8(*v-selector.DirectionOriginal))
	case **uint32:
		w.b = attr.AppendUint32BE(w.b, a.typ, **v)
	case *setID:
		w.setID(a.typ, uint32(*v))
	case *time.Duration:
		w.b = attr.AppendUint64BE(w.b, a.typ, uint64(v.Milliseconds()))
	case *string:
		w.b = attr.AppendString(w.b, a.typ, *v)
	case *unterminated:
		w.b = attr.AppendBytes(w.b, a.typ, *v)
	case *[]byte:
		w.b = appendData(w.b, a.typ, *v)
	case *nativeData:
		w.b = appendData(w.b, a.typ, binary.NativeEndian.AppendUint32(nil, uint32(*v)))
	case *[]Expr:
		return w.nested(a.typ, *v)
	default:
		return fmt.Errorf("attribute %d is a %T, which has no encoding", a.typ, v)
	}
	return nil
}

// nested appends an attribute that holds one expression, or a list of several.
func (w *writer) nested(typ uint16, list []Expr) error {
	var outer, inner int
	w.b, outer = attr.OpenNested(w.b, typ)
	for _, e := range list {
		if len(list) > 1 {
			w.b, inner = attr.OpenNested(w.b, unix.NFTA_LIST_ELEM)
		}
		if err := w.expr(e); err != nil {
			return err
		}
		if len(list) > 1 {
			w.b = attr.Close(w.b, inner)
		}
	}
	w.b = attr.Close(w.b, outer)
	return nil
}

// appendData appends a nested NFTA_DATA_VALUE.
func appendData(b []byte, typ uint16, v []byte) []byte {
	b, at := attr.OpenNested(b, typ)
	return attr.Close(attr.AppendBytes(b, unix.NFTA_DATA_VALUE, v), at)
}

// read sets the attribute's field. Nested expressions are not read.
func (a attribute) read(r *attr.Reader) {
	switch v := a.to.(type) {
	case *bool:
		*v = r.Uint32BE()&1 != 0
	case *uint8:
		*v = r.Uint8()
	case *uint16:
		*v = r.Uint16BE()
	case *uint32:
		*v = r.Uint32BE()
	case *selector.Direction:
		*v = selector.DirectionOriginal + selector.Direction(r.Uint8())
	case **uint32:
		n := r.Uint32BE()
		*v = &n
	case *setID:
		*v = setID(r.Uint32BE())
	case *time.Duration:
		*v = time.Duration(r.Uint64BE()) * time.Millisecond
	case *string:
		*v = r.Text()
	case *unterminated:
		*v = unterminated(r.Text())
	case *[]byte:
		*v = append([]byte(nil), Data(r)...)
	case *nativeData:
		data := r.Nested()
		if data.Next() {
			*v = nativeData(data.Uint32NE())
		}
	}
}

// Data returns the NFTA_DATA_VALUE in the current attribute of r. It refers to
// the buffer of r.
func Data(r *attr.Reader) []byte {
	v, _ := attr.Find(r.Bytes(), unix.NFTA_DATA_VALUE)
	return v.Bytes()
}

// Unmarshal sets the fields of e, which is not a Library, from the payload of
// NFTA_EXPR_DATA. Expressions within e are not read.
func Unmarshal(data []byte, e Expr) error {
	t := e.table()
	r := attr.NewReader(data)
	for r.Next() {
		for _, a := range t.attributes {
			if a.typ == r.Type() {
				a.read(&r)
				break
			}
		}
	}
	if err := r.Err(); err != nil {
		return fmt.Errorf("unmarshal %s: %w", t.name, err)
	}
	return nil
}

// Split returns the name and the attributes of a marshalled expression.
func Split(b []byte) (name string, data []byte, err error) {
	r := attr.NewReader(b)
	for r.Next() {
		switch r.Type() {
		case unix.NFTA_EXPR_NAME:
			name = r.Text()
		case unix.NFTA_EXPR_DATA:
			data = r.Bytes()
		}
	}
	if err := r.Err(); err != nil {
		return "", nil, fmt.Errorf("unmarshal expression: %w", err)
	}
	return name, data, nil
}

// flag returns bits if yes is true, else 0.
func flag(yes bool, bits uint32) uint32 {
	if yes {
		return bits
	}
	return 0
}
