package compile

import (
	"slices"

	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/selector"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/syntax"
)

// The header begins at offset in its layer, in bits.
func newPayload(pos syntax.Pos, h *selector.Header, f *selector.Field, offset uint32) *payloadTerm {
	info := termInfo{pos: pos, typ: f.Type, bits: f.Bits, width: f.Bits, order: datatype.BigEndian}
	return &payloadTerm{info, h, f, h.Layer, offset + f.Offset}
}

func (r *ruleCompiler) payload(x *syntax.Payload) term {
	p := r.payloadField(x)
	return wholeBytes(p, p.offset)
}

// payloadField returns the field without the operations of bit fields.
func (r *ruleCompiler) payloadField(x *syntax.Payload) *payloadTerm {
	h, f, err := selector.FieldOf(x)
	check(err)
	offset := r.locate(h, x.Pos)
	r.requireICMP(h, f, x.Pos)
	return newPayload(x.Pos, h, f, offset)
}

func (r *ruleCompiler) requireICMP(h *selector.Header, f *selector.Field, pos syntax.Pos) {
	if len(f.ICMPTypes) == 0 {
		return
	}
	if known := r.ctx.icmpType; known != 0 {
		if slices.Contains(f.ICMPTypes, known) {
			return
		}
		fail(pos, "%s %s: the rule matches ICMP type %d, which has no such field", h.Name, f.Name, known)
	}
	m := &matchStmt{left: newPayload(pos, h, h.ProtocolField(), 0), op: "=="}
	if len(f.ICMPTypes) == 1 {
		m.right = &constTerm{*m.left.info(), value{lo: f.ICMPTypes[0]}}
	} else {
		elems := make([]set.Element, len(f.ICMPTypes))
		for i, n := range f.ICMPTypes {
			elems[i].Key = string([]byte{byte(n)})
		}
		set := r.newAnonymous(&anonymousSpec{key: m.left, syntaxKey: &syntax.Payload{Proto: h.Name, Field: "type"}}, elems)
		m.right = set
	}
	r.add(m)
	r.ctx.icmpType = f.ICMPTypes[0]
}

// wholeBytes loads whole bytes, masks other bits out and shifts the rest, like nft; offset is in
// bits.
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

// fieldShift returns the field's distance from the end of its last byte. extra is 8 if the field
// lies in one byte more than its width takes, else 0.
func fieldShift(offset, bits uint32) (shift, extra uint32) {
	n := int((bits+7)&^7) - int(offset%8+bits)
	for n < 0 {
		n += 8
		extra += 8
	}
	return uint32(n), extra
}

func (r *ruleCompiler) rawPayload(x *syntax.RawPayload) term {
	p := newRawPayload(x)
	return wholeBytes(p, p.offset)
}

func newRawPayload(x *syntax.RawPayload) *payloadTerm {
	h, f, l, err := selector.RawField(x)
	check(err)
	p := newPayload(x.Pos, h, f, 0)
	p.layer = l
	return p
}

// checkMasked rejects fields with fewer bytes than were loaded: the kernel rejects nft's set.
func (spec *anonymousSpec) checkMasked() {
	b, ok := spec.key.(*binaryTerm)
	if !ok || b.op == ">>" || spec.interval || spec.isMap || (b.width+7)/8 == b.bytes() {
		return
	}
	fail(b.pos, "the kernel has no sets for an operation on a field of %d bits in %d bytes: write a comparison for each value", b.width, b.bytes())
}

func rawBits(t term) bool {
	for b, ok := t.(*binaryTerm); ok; b, ok = t.(*binaryTerm) {
		t = b.x
	}
	p, ok := t.(*payloadTerm)
	return ok && p.header == &selector.HeaderRaw && p.field.Partial()
}
