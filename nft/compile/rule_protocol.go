package compile

import (
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/selector"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/syntax"
)

// the most link headers that nft tracks
const maxStacked = 16

// learn updates the context after a comparison for equality.
func (r *ruleCompiler) learn(left, right term) {
	switch right := right.(type) {
	case *constTerm:
		r.learnValue(left, right.v.lo)
	case *setTerm:
		if right.id == 0 {
			return
		}
		for _, v := range right.values {
			r.learnValue(left, v.lo)
		}
		a := &r.out.Anonymous[right.id-1]
		if a.Set.Map || a.Set.Flags&set.FlagInterval != 0 || len(a.Set.Key.Fields) > 0 {
			return
		}
		for _, e := range a.Elements {
			if e.Key == "" {
				continue
			}
			r.learnValue(left, parseValue([]byte(e.Key), left.info().order).lo)
		}
	}
}

// singleValues returns the values in text order, in which the rule learns from them; elements are
// reordered.
func (spec *anonymousSpec) singleValues(keys []elemKey) []value {
	if !spec.interval || spec.isMap {
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

func (r *ruleCompiler) learnValue(left term, num uint64) {
	switch left := left.(type) {
	case *keyTerm:
		switch {
		case !left.ct:
			r.learnMeta(left.key, num)
		case left.key.Name == "l3proto":
			r.learnUpper(selector.LayerLink, num)
		case left.key.Name == "protocol":
			r.learnUpper(selector.LayerNetwork, num)
		}
	case *payloadTerm:
		if left.field.Protocol {
			r.learnField(left.header.Layer, num, left.pos)
		}
	}
}

func (r *ruleCompiler) learnUpper(l selector.Layer, num uint64) {
	if lower := r.ctx.at(l); lower != nil {
		if h := lower.Upper(num); h != nil {
			r.ctx.know(h)
		}
	}
}

func (r *ruleCompiler) learnField(l selector.Layer, num uint64, pos syntax.Pos) {
	known := r.ctx.at(l)
	h := known.Upper(num)
	switch {
	case h == nil:
		r.learnICMP(known, num)
		return
	case h.Layer != known.Layer:
	case known.Length == 0:
		fail(pos, "%s in %s: nft(8) 1.0.6 aborts on this", h.Name, known.Name)
	case len(r.ctx.stacked) < maxStacked:
		r.ctx.stacked = append(r.ctx.stacked, known)
	}
	r.ctx.know(h)
}

func (r *ruleCompiler) learnICMP(known *selector.Header, num uint64) {
	switch {
	case known == &selector.HeaderICMP && num == selector.ICMPEchoReply:
		r.ctx.icmpType = selector.ICMPEchoRequest
	case known == &selector.HeaderICMPv6 && num == selector.ICMPv6EchoReply:
		r.ctx.icmpType = selector.ICMPv6EchoRequest
	case known == &selector.HeaderICMP || known == &selector.HeaderICMPv6:
		r.ctx.icmpType = num
	}
}

func (r *ruleCompiler) learnMeta(key *selector.Key, num uint64) {
	switch key.Name {
	case "l4proto":
		r.learnNumber(&selector.HeaderService, selector.LayerTransport, num)
	case "nfproto":
		if r.ctx.family == nft.FamilyInet {
			r.learnNumber(&selector.HeaderInet, selector.LayerNetwork, num)
		}
	case "protocol":
		switch r.ctx.family {
		case nft.FamilyBridge, nft.FamilyNetdev:
			r.learnNumber(&selector.HeaderLink, selector.LayerNetwork, num)
		}
	case "iiftype":
		switch {
		case r.ctx.family == nft.FamilyBridge:
		case num == unix.ARPHRD_ETHER:
			r.ctx.know(&selector.HeaderEther)
		default:
			r.ctx.knowAt(selector.LayerLink, &selector.HeaderUnknown)
		}
	}
}

func (r *ruleCompiler) learnNumber(lower *selector.Header, l selector.Layer, num uint64) {
	h := lower.Upper(num)
	if h == nil {
		h = &selector.HeaderUnknown
	}
	// nft stores a VLAN tag as the network protocol.
	r.ctx.knowAt(l, h)
}
