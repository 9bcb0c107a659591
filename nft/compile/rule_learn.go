package compile

import (
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/syntax"
)

// maxStacked is how many link headers nft keeps in mind.
const maxStacked = 16

// learn updates the context by a comparison for equality.
func (r *ruleCompiler) learn(left, right term) error {
	switch right := right.(type) {
	case *constTerm:
		return r.learnValue(left, right.v.lo)
	case *setTerm:
		if right.id == 0 {
			return nil
		}
		for _, v := range right.values {
			if err := r.learnValue(left, v.lo); err != nil {
				return err
			}
		}
		a := &r.out.Anonymous[right.id-1]
		if a.Set.Map || a.Set.Flags&SetInterval != 0 || len(a.Set.Key.Fields) > 0 {
			return nil
		}
		for _, e := range a.Elements {
			if e.Key == "" {
				continue
			}
			if err := r.learnValue(left, parseValue([]byte(e.Key), left.info().order).lo); err != nil {
				return err
			}
		}
	}
	return nil
}

// singleValues returns the single values of an interval set in the order of
// the text, in which the rule learns from them; the elements get another one.
func (spec *anonymousSpec) singleValues(keys []elemKey) []value {
	if !spec.interval {
		return nil
	}
	var out []value
	for i := range keys {
		if c, ok := keys[i].key.(*constTerm); ok {
			out = append(out, c.v)
		}
	}
	return out
}

// learnValue updates the context by one value of a selector that names a
// protocol.
func (r *ruleCompiler) learnValue(left term, num uint64) error {
	switch left := left.(type) {
	case *metaTerm:
		r.learnMeta(left.key, num)
	case *ctTerm:
		switch left.key.name {
		case "l3proto":
			r.learnUpper(layerLink, num)
		case "protocol":
			r.learnUpper(layerNetwork, num)
		}
	case *payloadTerm:
		if left.field.protocol {
			return r.learnField(left.header.layer, num, left.pos)
		}
	}
	return nil
}

// learnUpper updates the context by the number of what the known header of a
// layer carries.
func (r *ruleCompiler) learnUpper(l layer, num uint64) {
	if lower := r.ctx.at(l); lower != nil {
		if h := lower.upper(num); h != nil {
			r.ctx.know(h)
		}
	}
}

// learnField updates the context by a header's field that names what it
// carries, or the type of an ICMP message.
func (r *ruleCompiler) learnField(l layer, num uint64, pos syntax.Pos) error {
	known := r.ctx.at(l)
	h := known.upper(num)
	switch {
	case h == nil:
		r.learnICMP(known, num)
		return nil
	case h.layer != known.layer:
	case known.length == 0:
		return errorAt(pos, "%s in %s: nft(8) 1.0.6 aborts on this", h.name, known.name)
	case len(r.ctx.stacked) < maxStacked:
		r.ctx.stacked = append(r.ctx.stacked, known)
	}
	r.ctx.know(h)
	return nil
}

// learnICMP updates the context by the type of an ICMP message.
func (r *ruleCompiler) learnICMP(known *header, num uint64) {
	switch {
	case known == &headerICMP && num == icmpEchoReply:
		r.ctx.icmpType = icmpEchoRequest
	case known == &headerICMPv6 && num == icmpv6EchoReply:
		r.ctx.icmpType = icmpv6EchoRequest
	case known == &headerICMP || known == &headerICMPv6:
		r.ctx.icmpType = num
	}
}

// learnMeta updates the context by a meta key.
func (r *ruleCompiler) learnMeta(key *metaKey, num uint64) {
	switch key.name {
	case "l4proto":
		r.learnNumber(&headerService, layerTransport, num)
	case "nfproto":
		if r.ctx.family == nft.FamilyInet {
			r.learnNumber(&headerInet, layerNetwork, num)
		}
	case "protocol":
		switch r.ctx.family {
		case nft.FamilyBridge, nft.FamilyNetdev:
			r.learnNumber(&headerLink, layerNetwork, num)
		}
	case "iiftype":
		switch {
		case r.ctx.family == nft.FamilyBridge:
		case num == arphrdEther:
			r.ctx.know(&headerEther)
		default:
			r.ctx.knowAt(layerLink, &headerUnknown)
		}
	}
}

// learnNumber updates a layer by the number of its protocol.
func (r *ruleCompiler) learnNumber(lower *header, l layer, num uint64) {
	h := lower.upper(num)
	if h == nil {
		h = &headerUnknown
	}
	// nft puts a VLAN tag where the network protocol should be.
	r.ctx.knowAt(l, h)
}
