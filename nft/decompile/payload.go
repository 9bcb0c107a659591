package decompile

import (
	"math/big"
	"slices"

	google "github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/selector"
	"github.com/weft-proxy/weft/nft/syntax"
)

// headers matched by the rule
type protocols struct {
	// in order
	links              []*selector.Header
	network, transport *selector.Header
	// of ICMP, if icmp is true
	icmp     bool
	icmpType uint64
	// matches that the compiler may add
	implied []*implied
}

// establishes a header of the packet
type implied struct {
	match  syntax.Stmt
	header *selector.Header
	// used: the rule reads the header; moved: an iptables match comes before this, and the compiler
	// adds the comparison after it.
	used, moved bool
}

func (d *draft) use(h *selector.Header) {
	for _, i := range d.implied {
		icmp := i.header == &selector.HeaderIP && h == &selector.HeaderICMP || i.header == &selector.HeaderIP6 && h == &selector.HeaderICMPv6
		if i.used || i.header != h && !icmp {
			continue
		}
		i.used = true
		i.moved = slices.ContainsFunc(d.out[slices.Index(d.out, i.match):], func(s syntax.Stmt) bool { x, ok := s.(*syntax.XT); return ok && x.Kind == "match" })
	}
}

func (p *protocols) know(family nft.Family) {
	switch family {
	case nft.FamilyBridge:
		p.links = []*selector.Header{&selector.HeaderEther}
	case nft.FamilyIP:
		p.network = &selector.HeaderIP
	case nft.FamilyIP6:
		p.network = &selector.HeaderIP6
	case nft.FamilyARP:
		p.network = &selector.HeaderARP
	default:
	}
}

// learn returns the protocol named by n, or with the message type n, or nil.
func (p *protocols) learn(v *value, n uint64) (h *selector.Header) {
	switch {
	case v.mask != nil:
	case v.key != nil && v.base == 0:
		switch v.key.Name {
		case "l4proto", "protocol":
			if v.key.Type == datatype.InetProto {
				h = selector.HeaderService.Upper(n)
				break
			}
			h = selector.HeaderLink.Upper(n)
		case "nfproto", "l3proto":
			h = selector.HeaderInet.Upper(n)
		case "iiftype":
			if n == unix.ARPHRD_ETHER {
				h = &selector.HeaderEther
			}
		}
	case v.field != nil && v.field.Protocol:
		switch {
		case v.base == selector.LayerLink:
			h = selector.HeaderLink.Upper(n)
		case v.base == selector.LayerNetwork:
			h = selector.HeaderService.Upper(n)
		case p.transport == &selector.HeaderICMP, p.transport == &selector.HeaderICMPv6:
			p.icmp, p.icmpType = true, n
			return p.transport
		}
	}
	if h == nil {
		return nil
	}
	switch h.Layer {
	case selector.LayerLink:
		p.links = append(p.links, h)
	case selector.LayerNetwork:
		p.network = h
	default:
		p.transport = h
	}
	return h
}

// place returns the header at offset, and its begin in bits.
func (p *protocols) place(l selector.Layer, offset uint32) (h *selector.Header, begin uint32) {
	switch l {
	case selector.LayerLink:
		for i, h := range p.links {
			if offset < begin+h.Length || i == len(p.links)-1 {
				return h, begin
			}
			begin += h.Length
		}
	case selector.LayerNetwork:
		return p.network, 0
	case selector.LayerTransport:
		if p.transport != nil {
			return p.transport, 0
		}
		return &selector.HeaderTH, 0
	default:
	}
	return nil, 0
}

// fieldAt returns the header at offset and its field of at most the given bits, or nil.
func (p *protocols) fieldAt(l selector.Layer, offset, bits uint32) (*selector.Header, *selector.Field) {
	h, begin := p.place(l, offset)
	if h == nil {
		return nil, nil
	}
	i := slices.IndexFunc(h.Fields, func(f selector.Field) bool {
		has := len(f.ICMPTypes) == 0 || p.icmp && slices.Contains(f.ICMPTypes, p.icmpType)
		return begin+f.Offset == offset && f.Bits <= bits && has
	})
	if i < 0 {
		return h, nil
	}
	return h, &h.Fields[i]
}

func (d *draft) setField(v *value, offset, bits uint32) bool {
	if v.extension {
		v.x = selector.ExthdrAt(v.op, v.ext, offset, bits)
		r, err := selector.ResolveExthdr(v.x.(*syntax.Exthdr))
		if err != nil {
			return false
		}
		v.typ = r.Type
		d.use(map[selector.ExthdrOp]*selector.Header{selector.ExthdrIPv6: &selector.HeaderIP6, selector.ExthdrIPv4: &selector.HeaderIP}[v.op])
		return true
	}
	h, f := d.fieldAt(v.base, offset, bits)
	if f == nil || f.Bits != bits {
		return false
	}
	d.use(h)
	v.x, v.typ, v.field = &syntax.Payload{Proto: h.Name, Field: f.Name}, f.Type, f
	return true
}

func (d *draft) raw(v *value, offset, bits uint32) {
	x := &syntax.RawPayload{Base: word("payload", uint8(v.base), "", "ll", "nh", "th", "ih"), Offset: offset, Bits: bits}
	if v.x, v.typ, v.raw = x, datatype.Integer, true; x.Base == "" {
		fail("payload", "the base is not known")
	}
}

func (d *draft) resolve(v *value) {
	switch {
	case v.x != nil || v.data != nil || len(v.parts) > 0:
	case v.mask != nil && d.bitField(v):
	case d.setField(v, v.offset, v.bits):
	case v.extension:
		fail("exthdr", "the field has no name")
	default:
		d.raw(v, v.offset, v.bits)
	}
}

func (d *draft) bitField(v *value) bool {
	m := v.number(v.mask)
	low, high := m.TrailingZeroBits(), uint(m.BitLen())
	if m.Sign() == 0 || m.Cmp(new(big.Int).Lsh(ones(high-low), low)) != 0 || v.number(v.xor).Sign() != 0 || 8*len(v.mask) != int(v.bits) {
		return false
	}
	ok := d.setField(v, v.offset+v.bits-uint32(high), uint32(high-low))
	if x, isExtension := v.x.(*syntax.Exthdr); !ok || isExtension && x.Raw {
		v.x = nil
		return false
	}
	v.width, v.shift, v.mask, v.xor = high-low, low, nil, nil
	return true
}

// payloadWrite adds an assignment to a field, around which the rule writes the original bits.
func (d *draft) payloadWrite(base, offset, n, register uint32) {
	checkPlace("payload", offset, n)
	v := &value{base: selector.Layer(base) + 1, offset: 8 * offset, bits: 8 * n, order: datatype.BigEndian}
	in := d.get("payload", register)
	if in.mask == nil || in.x != nil || in.base != v.base || in.offset != v.offset || in.bits != v.bits || in.extension {
		d.resolve(v)
		d.add(&syntax.Assign{Target: v.x, Value: d.argument("payload", register, v)})
		return
	}
	// the field is the complement of the mask
	field := *v
	field.mask = make([]byte, len(in.mask))
	for i, b := range in.mask {
		field.mask[i] = ^b
	}
	field.xor = make([]byte, len(in.mask))
	if !d.bitField(&field) {
		m := v.number(field.mask)
		low, high := m.TrailingZeroBits(), uint(m.BitLen())
		d.raw(&field, v.offset+v.bits-uint32(high), uint32(high-low))
		field.shift = low
	}
	d.add(&syntax.Assign{Target: field.x, Value: field.constant(in.xor)})
}

// comparePayload adds a comparison for each field. It returns false unless the payload has several
// fields or part of a field.
func (d *draft) comparePayload(v *value, op google.CmpOp, data []byte) bool {
	if v.x != nil || v.base == 0 || v.mask != nil || op != google.CmpOpEq && op != google.CmpOpNeq || int(v.bits) != 8*len(data) {
		return false
	}
	if h, f := d.fieldAt(v.base, v.offset, 1<<31); f != nil && f.Bits > v.bits && f.Bits%8 == 0 {
		d.use(h)
		part := &value{x: &syntax.Payload{Proto: h.Name, Field: f.Name}, typ: f.Type, bits: f.Bits, order: v.order}
		full := append(slices.Clone(data), make([]byte, int(f.Bits-v.bits)/8)...)
		d.match(part, compareWords[op], func(v *value) syntax.Expr { return &syntax.Prefix{X: v.constant(full), Len: 8 * len(data)} })
		return true
	}
	var parts []*value
	fields := d.protocols
	for at := uint32(0); at < v.bits; {
		h, f := fields.fieldAt(v.base, v.offset+at, v.bits-at)
		if f == nil || f.Bits%8 != 0 || f.Bits == v.bits {
			return false
		}
		part := &value{x: &syntax.Payload{Proto: h.Name, Field: f.Name}, typ: f.Type, bits: f.Bits, order: v.order, base: v.base, field: f}
		part.data = data[at/8 : (at+f.Bits)/8]
		fields.learn(part, v.number(part.data).Uint64())
		parts = append(parts, part)
		at += f.Bits
	}
	for _, part := range parts {
		data := part.data
		part.data = nil
		d.use(selector.HeaderByName(part.x.(*syntax.Payload).Proto))
		d.equal(part, op, data)
	}
	return true
}
