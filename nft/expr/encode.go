package expr

import (
	"encoding/binary"
	"fmt"

	google "github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/attr"
)

// maxExprs is the kernel's limit of expressions in a rule (NFT_RULE_MAXEXPRS).
const maxExprs = 128

// Encoded holds the marshalled expressions of a rule.
type Encoded struct {
	// Bytes are the payload of NFTA_RULE_EXPRESSIONS, with the numbers of
	// anonymous sets counted from 1.
	Bytes []byte
	// ids are the offsets of these numbers.
	ids []uint32
}

// Encode marshals the expressions of a rule in a table of the given family.
func Encode(family uint8, list []Expr) (Encoded, error) {
	if len(list) > maxExprs {
		return Encoded{}, fmt.Errorf("rule has %d expressions: the kernel accepts at most %d; split it", len(list), maxExprs)
	}
	w := &writer{family: family, b: make([]byte, 0, 72*len(list))}
	for _, e := range list {
		var at int
		w.b, at = attr.OpenNested(w.b, unix.NFTA_LIST_ELEM)
		if err := w.expr(e); err != nil {
			return Encoded{}, err
		}
		if len(w.b)-at > attr.MaxLen {
			return Encoded{}, fmt.Errorf("expression %s is too long", e)
		}
		w.b = attr.Close(w.b, at)
	}
	return Encoded{w.b, w.ids}, nil
}

// At returns a copy of the expressions in which anonymous set number i, counted
// from 1, has the transaction number base+i.
func (e *Encoded) At(base uint32) []byte {
	b := append([]byte(nil), e.Bytes...)
	for _, at := range e.ids {
		id := binary.BigEndian.Uint32(b[at:])
		binary.BigEndian.PutUint32(b[at:], base+id)
	}
	return b
}

// Marshal returns the name and the attributes of an expression.
func Marshal(family uint8, e Expr) ([]byte, error) {
	w := &writer{family: family}
	err := w.expr(e)
	return w.b, err
}

// writer marshals expressions.
type writer struct {
	family uint8
	b      []byte
	// ids are the offsets of the numbers of anonymous sets.
	ids []uint32
}

// expr appends the name and the attributes of an expression.
func (w *writer) expr(e Expr) error {
	if k, ok := e.(Library); ok {
		return w.library(k.Any)
	}
	t := e.table()
	data := w.open(t.name)
	for _, a := range t.attributes {
		if a.send {
			if err := w.attribute(a); err != nil {
				return fmt.Errorf("marshal %s: %w", t.name, err)
			}
		}
	}
	w.b = attr.Close(w.b, data)
	return nil
}

// open appends the name of an expression and begins its attributes.
func (w *writer) open(name string) (at int) {
	w.b, at = attr.OpenNested(attr.AppendString(w.b, unix.NFTA_EXPR_NAME, name), unix.NFTA_EXPR_DATA)
	return at
}

// setID appends the number of an anonymous set, 0 for a named one.
func (w *writer) setID(typ uint16, id uint32) {
	if id != 0 {
		w.ids = append(w.ids, uint32(len(w.b)+attr.HeaderLen))
	}
	w.b = attr.AppendUint32BE(w.b, typ, id)
}

// library appends an expression of google/nftables. The expressions that most
// rules consist of are marshalled here, with the same bytes but without the
// library's dozen allocations each, which would be half of the time that
// compiling a rule takes.
func (w *writer) library(e google.Any) error {
	switch e := e.(type) {
	case *google.Payload:
		if e.OperationType == google.PayloadLoad && e.CsumType == 0 {
			w.payload(e)
			return nil
		}
	case *google.Meta:
		w.meta(e)
		return nil
	case *google.Cmp:
		at := w.open("cmp")
		w.b = attr.AppendUint32BE(w.b, unix.NFTA_CMP_SREG, e.Register)
		w.b = attr.AppendUint32BE(w.b, unix.NFTA_CMP_OP, uint32(e.Op))
		w.b = attr.Close(appendData(w.b, unix.NFTA_CMP_DATA, e.Data), at)
		return nil
	case *google.Immediate:
		at := w.open("immediate")
		w.b = attr.AppendUint32BE(w.b, unix.NFTA_IMMEDIATE_DREG, e.Register)
		w.b = attr.Close(appendData(w.b, unix.NFTA_IMMEDIATE_DATA, e.Data), at)
		return nil
	case *google.Verdict:
		w.verdict(e)
		return nil
	case *google.Lookup:
		w.lookup(e)
		return nil
	}
	b, err := google.Marshal(w.family, e)
	if err != nil {
		return fmt.Errorf("marshal %T: %w", e, err)
	}
	w.b = append(w.b, b...)
	return nil
}

func (w *writer) payload(e *google.Payload) {
	at := w.open("payload")
	w.b = attr.AppendUint32BE(w.b, unix.NFTA_PAYLOAD_DREG, e.DestRegister)
	w.b = attr.AppendUint32BE(w.b, unix.NFTA_PAYLOAD_BASE, uint32(e.Base))
	w.b = attr.AppendUint32BE(w.b, unix.NFTA_PAYLOAD_OFFSET, e.Offset)
	w.b = attr.AppendUint32BE(w.b, unix.NFTA_PAYLOAD_LEN, e.Len)
	w.b = attr.Close(w.b, at)
}

func (w *writer) meta(e *google.Meta) {
	reg := uint16(unix.NFTA_META_DREG)
	if e.SourceRegister {
		reg = unix.NFTA_META_SREG
	}
	at := w.open("meta")
	w.b = attr.AppendUint32BE(w.b, unix.NFTA_META_KEY, uint32(e.Key))
	w.b = attr.AppendUint32BE(w.b, reg, e.Register)
	w.b = attr.Close(w.b, at)
}

func (w *writer) verdict(e *google.Verdict) {
	at := w.open("immediate")
	w.b = attr.AppendUint32BE(w.b, unix.NFTA_IMMEDIATE_DREG, unix.NFT_REG_VERDICT)
	b, data := attr.OpenNested(w.b, unix.NFTA_IMMEDIATE_DATA)
	b, verdict := attr.OpenNested(b, unix.NFTA_DATA_VERDICT)
	b = attr.AppendUint32BE(b, unix.NFTA_VERDICT_CODE, uint32(e.Kind))
	if e.Chain != "" {
		b = attr.AppendString(b, unix.NFTA_VERDICT_CHAIN, e.Chain)
	}
	w.b = attr.Close(attr.Close(attr.Close(b, verdict), data), at)
}

func (w *writer) lookup(e *google.Lookup) {
	at := w.open("lookup")
	if e.SourceRegister != 0 {
		w.b = attr.AppendUint32BE(w.b, unix.NFTA_LOOKUP_SREG, e.SourceRegister)
	}
	if e.IsDestRegSet {
		w.b = attr.AppendUint32BE(w.b, unix.NFTA_LOOKUP_DREG, e.DestRegister)
	}
	if e.Invert {
		w.b = attr.AppendUint32BE(w.b, unix.NFTA_LOOKUP_FLAGS, unix.NFT_LOOKUP_F_INV)
	}
	w.b = attr.AppendString(w.b, unix.NFTA_LOOKUP_SET, e.SetName)
	w.setID(unix.NFTA_LOOKUP_SET_ID, e.SetID)
	w.b = attr.Close(w.b, at)
}
