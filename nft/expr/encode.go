package expr

import (
	"encoding/binary"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/attr"
)

// NFT_RULE_MAXEXPRS
const maxExprs = 128

// Encoded holds the marshalled expressions of a rule.
type Encoded struct {
	// Bytes is NFTA_RULE_EXPRESSIONS. The anonymous set of SetID i has the transaction number i.
	Bytes []byte
	ids   []uint32
}

// Encode marshals at most 128 expressions of at most attr.MaxLen bytes.
func Encode(list []Expr) (Encoded, error) {
	if len(list) > maxExprs {
		return Encoded{}, fmt.Errorf("rule has %d expressions: the kernel accepts at most %d; split it", len(list), maxExprs)
	}
	w := newWriter(make([]byte, 0, 72*len(list)))
	defer w.release()
	for _, e := range list {
		var at int
		w.b, at = attr.OpenNested(w.b, unix.NFTA_LIST_ELEM)
		if err := w.expr(e); err != nil {
			return Encoded{}, err
		}
		if len(w.b)-at > attr.MaxLen {
			return Encoded{}, fmt.Errorf("expression %s is too long", Format(e))
		}
		w.b = attr.Close(w.b, at)
	}
	return Encoded{w.b, w.ids}, nil
}

// At returns a copy in which the anonymous set of SetID i has the transaction number base+i.
func (e *Encoded) At(base uint32) []byte {
	b := append([]byte(nil), e.Bytes...)
	for _, at := range e.ids {
		id := binary.BigEndian.Uint32(b[at:])
		binary.BigEndian.PutUint32(b[at:], base+id)
	}
	return b
}

// Marshal returns NFTA_EXPR_NAME and NFTA_EXPR_DATA.
func Marshal(e Expr) ([]byte, error) {
	w := newWriter(nil)
	defer w.release()
	err := w.expr(e)
	return w.b, err
}

type writer struct {
	b   []byte
	ids []uint32
	// by level of nested expressions
	tables [2]table
	level  int
}

var writers = sync.Pool{New: func() any { return new(writer) }}

func newWriter(b []byte) *writer {
	w := writers.Get().(*writer)
	*w = writer{b: b, tables: w.tables}
	return w
}

func (w *writer) release() {
	for i := range w.tables {
		a := w.tables[i].attributes
		clear(a[:cap(a)])
		w.tables[i] = table{attributes: a[:0]}
	}
	*w = writer{tables: w.tables}
	writers.Put(w)
}

func (w *writer) expr(e Expr) error {
	t := &w.tables[w.level]
	*t = table{attributes: t.attributes[:0]}
	e.table(t)
	switch {
	case t.name == "":
		return fmt.Errorf("marshal %T: it has no attributes", Unwrap(e))
	case len(t.attributes) == 0:
		w.b = attr.AppendString(w.b, unix.NFTA_EXPR_NAME, t.name)
		return nil
	}
	data := w.open(t.name)
	for i := range t.attributes {
		if a := &t.attributes[i]; a.send {
			if err := w.attribute(a); err != nil {
				return fmt.Errorf("marshal %s: %w", t.name, err)
			}
		}
	}
	w.b = attr.Close(w.b, data)
	return nil
}

func (w *writer) open(name string) (at int) {
	w.b, at = attr.OpenNested(attr.AppendString(w.b, unix.NFTA_EXPR_NAME, name), unix.NFTA_EXPR_DATA)
	return at
}

func (w *writer) attribute(a *attribute) (err error) {
	switch v := a.to.(type) {
	case *setID:
		if *v != 0 {
			w.ids = append(w.ids, uint32(len(w.b)+attr.HeaderLen))
		}
		w.b = attr.AppendUint32BE(w.b, a.typ, uint32(*v))
	case *[]Expr:
		return w.nested(a.typ, *v)
	default:
		w.b, err = attr.Append(w.b, a.typ, v)
	}
	return err
}

func (w *writer) nested(typ uint16, list []Expr) error {
	w.level++
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
	w.level--
	return nil
}
