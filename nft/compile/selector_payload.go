package compile

import (
	"slices"
	"strings"

	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/syntax"
)

// newPayload returns the term that loads a field of a header which begins at
// an offset of its layer, in bits.
func newPayload(pos syntax.Pos, h *header, f *field, offset uint32) *payloadTerm {
	info := termInfo{pos: pos, typ: f.typ, bits: f.bits, width: f.bits, order: datatype.BigEndian}
	return &payloadTerm{info, h, f, h.layer, offset + f.offset}
}

// payload evaluates a header field.
func (r *ruleCompiler) payload(x *syntax.Payload) (term, error) {
	p, err := r.payloadField(x)
	if err != nil {
		return nil, err
	}
	return wholeBytes(p, p.offset), nil
}

// payloadField evaluates a header field without the operations that a bit
// field needs.
func (r *ruleCompiler) payloadField(x *syntax.Payload) (*payloadTerm, error) {
	h := headerByName(x.Proto)
	if h == nil {
		return nil, errorAt(x.Pos, "header %s is not supported", x.Proto)
	}
	f := h.field(x.Field)
	if f == nil {
		names := make([]string, len(h.fields))
		for i := range h.fields {
			names[i] = h.fields[i].name
		}
		return nil, errorAt(x.FieldPos, "unknown field %q of %s: want %s", x.Field, h.name, strings.Join(names, ", "))
	}
	offset, err := r.locate(h, x.Pos)
	if err != nil {
		return nil, err
	}
	if err := r.requireICMP(h, f, x.Pos); err != nil {
		return nil, err
	}
	return newPayload(x.Pos, h, f, offset), nil
}

// requireICMP makes sure that the ICMP message has a field.
func (r *ruleCompiler) requireICMP(h *header, f *field, pos syntax.Pos) error {
	if len(f.icmpTypes) == 0 {
		return nil
	}
	if known := r.ctx.icmpType; known != 0 {
		if slices.Contains(f.icmpTypes, known) {
			return nil
		}
		return errorAt(pos, "%s %s: the rule matches ICMP type %d, which has no such field", h.name, f.name, known)
	}
	m := &matchStmt{left: newPayload(pos, h, h.protocolField(), 0), op: "=="}
	if len(f.icmpTypes) == 1 {
		m.right = &constTerm{*m.left.info(), value{lo: f.icmpTypes[0]}}
	} else {
		elems := make([]Element, len(f.icmpTypes))
		for i, n := range f.icmpTypes {
			elems[i].Key = string([]byte{byte(n)})
		}
		set, err := r.newAnonymous(&anonymousSpec{key: m.left, syntaxKey: &syntax.Payload{Proto: h.name, Field: "type"}}, elems)
		if err != nil {
			return err
		}
		m.right = set
	}
	r.prepend(m)
	r.ctx.icmpType = f.icmpTypes[0]
	return nil
}

// wholeBytes returns what compares a field, at an offset in bits, that does not fill its
// bytes: nft loads all of them, masks the others out and shifts the rest.
func wholeBytes(x term, offset uint32) term {
	info := *x.info()
	if offset%8 == 0 && info.bits%8 == 0 {
		return x
	}
	shift, extra := fieldShift(offset, info.bits)
	x.info().bits += extra
	info.bits += shift
	and := &binaryTerm{info, "&", x, valueMask(info.width).shl(shift)}
	if shift == 0 {
		return and
	}
	return &binaryTerm{info, ">>", and, value{lo: uint64(shift)}}
}

// fieldShift returns how far a bit field is from the end of its last byte, and
// how many bits more than its own width, rounded up, its bytes have.
func fieldShift(offset, bits uint32) (shift, extra uint32) {
	n := int((bits+7)&^7) - int(offset%8+bits)
	for n < 0 {
		n += 8
		extra += 8
	}
	return uint32(n), extra
}

// maxRaw is the widest raw payload, in bits: what the kernel compares.
const maxRaw = 128

// rawPayload evaluates raw payload.
func (r *ruleCompiler) rawPayload(x *syntax.RawPayload) (term, error) {
	p, err := newRawPayload(x)
	if err != nil {
		return nil, err
	}
	return wholeBytes(p, p.offset), nil
}

// newRawPayload returns the term that loads raw payload.
func newRawPayload(x *syntax.RawPayload) (*payloadTerm, error) {
	h, f, l, err := rawField(x)
	if err != nil {
		return nil, err
	}
	p := newPayload(x.Pos, h, f, 0)
	p.layer = l
	return p, nil
}

// rawField returns what raw payload is: the ports of the transport header, or
// a number.
func rawField(x *syntax.RawPayload) (*header, *field, layer, *Error) {
	l := layer(slices.Index(rawBases[:], x.Base))
	f := &field{typ: datatype.Integer, offset: x.Offset, bits: x.Bits}
	switch {
	case l > layerInner || x.Base == "":
		return nil, nil, 0, errorAt(x.Pos, "unknown base %q of raw payload: want ll, nh, th or ih", x.Base)
	case x.Bits == 0:
		return nil, nil, 0, errorAt(x.Pos, "raw payload of 0 bits has no value")
	case x.Bits > maxRaw, x.Offset%8+x.Bits > maxRaw:
		return nil, nil, 0, errorAt(x.Pos, "raw payload of %d bits is too wide: at most %d are possible, in whole bytes", x.Bits, maxRaw)
	case x.Offset/8 > maxRawOffset:
		return nil, nil, 0, errorAt(x.Pos, "offset %d of raw payload is too large: the greatest is %d", x.Offset, maxRawOffset*8+7)
	case l == layerTransport && x.Bits == 16 && x.Offset <= 16 && x.Offset%16 == 0:
		return &headerTH, &headerTH.fields[x.Offset/16], l, nil
	}
	return &headerRaw, f, l, nil
}

// rawBases are the names of the layers, in their order.
var rawBases = [...]string{"", "ll", "nh", "th", "ih"}

// maxRawOffset is the greatest offset that the kernel takes, in bytes.
const maxRawOffset = 1<<16 - 1

// checkMasked refuses operations on bit fields that are looked up in a set:
// the field has fewer bytes than were loaded for it, and nft makes a set that
// the kernel does not take.
func (spec *anonymousSpec) checkMasked() error {
	b, ok := spec.key.(*binaryTerm)
	if !ok || b.op == ">>" || spec.interval || (b.width+7)/8 == b.bytes() {
		return nil
	}
	return errorAt(b.pos, "the kernel has no sets for an operation on a field of %d bits in %d bytes: write a comparison for each value", b.width, b.bytes())
}

// rawBits reports whether a term is made of raw payload that does not fill its
// bytes.
func rawBits(t term) bool {
	for {
		b, ok := t.(*binaryTerm)
		if !ok {
			break
		}
		t = b.x
	}
	p, ok := t.(*payloadTerm)
	return ok && p.header == &headerRaw && p.field.partial()
}
