package compile

import (
	"slices"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/syntax"
)

// context is what a rule is known to have matched so far: the protocols of the
// packet. It decides which implicit dependencies a selector needs.
type context struct {
	family nft.Family
	layers [layers]knownLayer
	// icmpType is the type of ICMP message that the rule matches, if icmpKnown.
	icmpType  uint64
	icmpKnown bool
}

// knownLayer is a layer of the context: the protocol that was matched last,
// and all that were.
type knownLayer struct {
	header *header
	// first is another protocol than header if several are possible.
	first *header
}

// newContext returns what a table's family says by itself.
func newContext(family nft.Family) context {
	c := context{family: family}
	switch family {
	case nft.FamilyIP:
		c.know(&headerIP)
	case nft.FamilyIP6:
		c.know(&headerIP6)
	case nft.FamilyInet:
		c.know(&headerInet)
	case nft.FamilyARP:
		c.know(&headerARP)
	default:
		c.know(&headerLink)
	}
	return c
}

// know records that the packet has (or may have) a header.
func (c *context) know(h *header) { c.knowAt(h.layer, h) }

func (c *context) knowAt(l layer, h *header) {
	k := &c.layers[l]
	if k.header != nil && k.header != h && k.first == nil {
		k.first = k.header
	}
	k.header = h
}

// at returns the protocol of a layer, or nil.
func (c *context) at(l layer) *header { return c.layers[l].header }

// conflict returns a protocol that excludes h, or nil.
func (c *context) conflict(h *header) *header {
	k := c.layers[h.layer]
	switch {
	case k.header == nil:
		return nil
	case k.header != h:
		return k.header
	default:
		return k.first
	}
}

// require makes sure that the packet has a header, by matching for it before
// the statement at hand if the rule has not done so yet.
func (r *ruleCompiler) require(h *header, pos syntax.Pos) error {
	if h.raw {
		return nil
	}
	if other := r.ctx.conflict(h); other != nil {
		return errorAt(pos, "conflicting protocols: the rule matches %s, and %s cannot match then", other.name, h.name)
	}
	if r.ctx.at(h.layer) != nil {
		return nil
	}
	lower := r.ctx.at(h.layer - 1)
	if lower == nil {
		switch h {
		case &headerICMP:
			lower = &headerIP
		case &headerICMPv6:
			lower = &headerIP6
		default:
			lower = &headerService
		}
		if lower != &headerService {
			if err := r.require(lower, pos); err != nil {
				return err
			}
		}
	}
	num, ok := lower.number(h)
	if !ok || lower.key == "" {
		return errorAt(pos, "conflicting protocols: %s cannot be in %s", h.name, lower.name)
	}
	r.prepend(r.depend(lower.key, num, pos))
	r.ctx.know(h)
	return nil
}

// depend returns the statement that a meta key has a value.
func (r *ruleCompiler) depend(meta string, num uint64, pos syntax.Pos) *matchStmt {
	key := metaByName(meta)
	info := termInfo{pos: pos, typ: key.typ, bits: key.bits, width: key.bits, order: key.order}
	return &matchStmt{left: &metaTerm{info, key}, op: "==", right: &constTerm{info, value{lo: num}}}
}

// requireICMP makes sure that the ICMP message has a field.
func (r *ruleCompiler) requireICMP(h *header, f *field, pos syntax.Pos) error {
	if len(f.icmpTypes) == 0 {
		return nil
	}
	if r.ctx.icmpKnown {
		if slices.Contains(f.icmpTypes, r.ctx.icmpType) {
			return nil
		}
		return errorAt(pos, "%s %s: the rule matches ICMP type %d, which has no such field", h.name, f.name, r.ctx.icmpType)
	}
	typ := h.field("type")
	info := termInfo{pos: pos, typ: typ.typ, bits: typ.bits, width: typ.bits, order: datatype.BigEndian}
	m := &matchStmt{left: &payloadTerm{info, h, typ, h.layer, typ.offset}, op: "=="}
	if len(f.icmpTypes) == 1 {
		m.right = &constTerm{info, value{lo: f.icmpTypes[0]}}
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
	r.ctx.icmpKnown, r.ctx.icmpType = true, f.icmpTypes[0]
	return nil
}

// learn updates the context by a comparison for equality.
func (r *ruleCompiler) learn(left, right term) {
	switch right := right.(type) {
	case *constTerm:
		r.learnValue(left, right.v)
	case *setTerm:
		if right.id == 0 {
			return
		}
		a := &r.out.Anonymous[right.id-1]
		if a.Set.Map || a.Set.Flags&SetConcat != 0 || len(a.Set.Key.Fields) > 0 {
			return
		}
		for _, e := range a.Elements {
			if e.KeyEnd == "" || e.KeyEnd == e.Key {
				r.learnValue(left, parseValue([]byte(e.Key), left.info().order))
			}
		}
	}
}

// learnValue updates the context by one value of a selector that names a
// protocol.
func (r *ruleCompiler) learnValue(left term, v value) {
	switch left := left.(type) {
	case *metaTerm:
		r.learnMeta(left.key, v.lo)
	case *ctTerm:
		switch left.key.name {
		case "l3proto":
			r.learnNumber(networks, layerNetwork, v.lo, false)
		case "protocol":
			r.learnNumber(transports, layerTransport, v.lo, false)
		}
	case *payloadTerm:
		switch {
		case !left.field.protocol:
		case left.header == &headerICMP || left.header == &headerICMPv6:
			r.ctx.icmpKnown, r.ctx.icmpType = true, v.lo
		default:
			r.learnNumber(left.header.uppers, left.header.layer+1, v.lo, false)
		}
	}
}

// learnMeta updates the context by a meta key.
func (r *ruleCompiler) learnMeta(key *metaKey, num uint64) {
	switch key.name {
	case "l4proto":
		r.learnNumber(transports, layerTransport, num, true)
	case "nfproto":
		r.learnNumber(networks, layerNetwork, num, true)
	case "protocol":
		switch r.ctx.family {
		case nft.FamilyBridge, nft.FamilyNetdev:
			r.learnNumber(etherNetworks, layerNetwork, num, true)
		}
	}
}

// learnNumber updates a layer by the number of its protocol.
func (r *ruleCompiler) learnNumber(uppers []upper, l layer, num uint64, unknown bool) {
	for _, u := range uppers {
		if u.num == num {
			r.ctx.knowAt(l, u.header())
			return
		}
	}
	if unknown {
		r.ctx.knowAt(l, &headerUnknown)
	}
}
