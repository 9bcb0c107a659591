package expr

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/attr"
)

// table describes an expression and its attributes.
type table struct {
	name string
	// format is libnftnl's listing, by default the name. Its verbs refer to attributes by position:
	// %[1]d.
	format string
	text   func() string
	// attributes are in the order of nft(8). Without attributes, only the name is sent.
	attributes []attribute
}

type attribute struct {
	// NFTA_*
	typ uint16
	// pointer to the field, see [attr.Append]; also *setID or *[]Expr
	to   any
	send bool
	// format of a value other than 0, after the table's format
	list  string
	words func(uint32) string
}

func (t *table) add(typ uint16, to any) {
	t.attributes = append(t.attributes, attribute{typ: typ, to: to, send: true})
}

func (t *table) addIf(send bool, typ uint16, to any, list string) {
	t.attributes = append(t.attributes, attribute{typ: typ, to: to, send: send, list: list})
}

func (t *table) addWord(typ uint16, to any, words func(uint32) string) {
	t.attributes = append(t.attributes, attribute{typ: typ, to: to, send: true, words: words})
}

// Format returns the expression as `nft --debug=netlink` prints it, without brackets.
func Format(e Expr) string {
	var t table
	e.table(&t)
	if t.text != nil {
		return t.text()
	}
	if t.format == "" {
		t.format = t.name
	}
	values := make([]any, len(t.attributes))
	for i := range t.attributes {
		values[i] = t.attributes[i].value()
	}
	s := t.format
	if strings.Contains(s, "%[") {
		s = fmt.Sprintf(s, values...)
	}
	for i, a := range t.attributes {
		if a.list != "" && a.send && !reflect.ValueOf(values[i]).IsZero() {
			s += fmt.Sprintf(a.list, values[i])
		}
	}
	return s
}

func (a *attribute) value() any {
	switch v := a.to.(type) {
	case *uint32:
		if a.words != nil {
			return a.words(*v)
		}
		return *v
	case *uint64:
		if a.words != nil {
			return a.words(uint32(*v)) //nolint:gosec // a unit of time
		}
		return *v
	case attr.Optional[uint32]:
		return value(*v.To)
	case *bool:
		return flag(*v, 1)
	case *time.Duration:
		return v.Milliseconds()
	case fmt.Stringer:
		return v.String()
	case *[]Expr:
		s := ""
		for _, e := range *v {
			s += " expr [ " + Format(e) + " ]"
		}
		return s
	default:
		return reflect.Indirect(reflect.ValueOf(v)).Interface()
	}
}

type setID uint32

// data is NFTA_DATA_VALUE.
type data []byte

func (d *data) AppendAttr(b []byte, typ uint16) ([]byte, error) {
	return AppendData(b, typ, *d), nil
}

func (d *data) ReadAttr(r *attr.Reader) error {
	*d = append(data(nil), Data(r)...)
	return nil
}

// AppendData appends a NFTA_DATA_VALUE.
func AppendData[T ~string | ~[]byte](b []byte, typ uint16, v T) []byte {
	b, at := attr.OpenNested(b, typ)
	return attr.Close(attr.AppendBytes(b, unix.NFTA_DATA_VALUE, v), at)
}

func (d *data) String() string { return DumpData(*d) }

// Data returns the NFTA_DATA_VALUE in r's attribute, which refers to the buffer, or nil.
func Data(r *attr.Reader) []byte {
	v, _ := attr.Find(r.Bytes(), unix.NFTA_DATA_VALUE)
	return v.Bytes()
}

// Unmarshal sets the fields of e from NFTA_EXPR_DATA.
func Unmarshal(data []byte, e Expr) (err error) {
	var t table
	e.table(&t)
	r := attr.NewReader(data)
	for r.Next() {
		for _, a := range t.attributes {
			if a.typ != r.Type() {
				continue
			}
			switch v := a.to.(type) {
			case *setID:
				*v = setID(r.Uint32BE())
			case *[]Expr:
				if a.typ == unix.NFTA_DYNSET_EXPR {
					*v = make([]Expr, 1)
					(*v)[0], err = decode(r.Bytes())
				} else {
					*v, err = Decode(r.Bytes())
				}
			default:
				err = r.Into(v)
			}
			if err != nil {
				return fmt.Errorf("unmarshal %s: %w", t.name, err)
			}
			break
		}
	}
	if err := r.Err(); err != nil {
		return fmt.Errorf("unmarshal %s: %w", t.name, err)
	}
	return nil
}

// Split returns the name and the attributes of an expression.
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

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

func formatIf(format string, v uint32) string {
	if v == 0 {
		return ""
	}
	return fmt.Sprintf(format, v)
}

func flag(yes bool, bits uint32) uint32 {
	if yes {
		return bits
	}
	return 0
}
