package compile

import (
	"slices"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/syntax"
)

// context is what a rule is known to have matched so far: the protocols of the
// packet. It decides which implicit dependencies a selector needs.
type context struct {
	family nft.Family
	layers [layers]knownLayer
	// stacked are the link headers in front of the one that is known: the
	// Ethernet header of a tagged frame, and outer tags.
	stacked []*header
	// icmpType is the type of ICMP message that the rule matches, 0 while that
	// is not known. An echo reply counts as an echo request, since both have
	// the same fields.
	icmpType uint64
}

// knownLayer is a layer of the context.
type knownLayer struct {
	// header is the protocol that was matched last.
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
	case nft.FamilyBridge:
		c.know(&headerEther)
	default:
		c.know(&headerLink)
	}
	return c
}

// know records that the packet has (or may have) a header.
func (c *context) know(h *header) { c.knowAt(h.layer, h) }

// knowAt records a header of a layer; headerUnknown can be of any. Of the
// layers below the transport nft remembers only the last one.
func (c *context) knowAt(l layer, h *header) {
	k := &c.layers[l]
	if l == layerTransport && k.header != nil && k.header != h && k.first == nil {
		k.first = k.header
	}
	k.header = h
}

// at returns the protocol of a layer, or nil.
func (c *context) at(l layer) *header { return c.layers[l].header }

// ambiguous returns a protocol beside h that a layer can have, or nil.
func (c *context) ambiguous(h *header) *header {
	k := c.layers[h.layer]
	switch {
	case k.first == nil:
		return nil
	case k.header != h:
		return k.header
	default:
		return k.first
	}
}

// stackedBits is where the known header of a layer begins, in bits.
func (c *context) stackedBits(l layer) uint32 {
	n := uint32(0)
	if l == layerLink {
		for _, h := range c.stacked {
			n += h.length
		}
	}
	return n
}

// require makes sure that the packet has a header, by matching for it before
// the statement at hand if the rule has not done so yet.
func (r *ruleCompiler) require(h *header, pos syntax.Pos) error {
	_, err := r.locate(h, pos)
	return err
}

// locate is require, and returns where the header begins in its layer, in
// bits: a VLAN tag comes after the Ethernet header.
func (r *ruleCompiler) locate(h *header, pos syntax.Pos) (uint32, error) {
	if h.raw {
		return 0, nil
	}
	known := r.ctx.at(h.layer)
	if known == nil {
		if err := r.requireLower(h, pos); err != nil {
			return 0, err
		}
		if known = r.ctx.at(h.layer); known == h {
			return 0, nil
		}
		if num, ok := known.number(h); ok && h.layer == layerLink {
			return r.stackOn(known, num, pos)
		}
	}
	if other := r.ctx.ambiguous(h); other != nil {
		return 0, errConflict(other, h, pos)
	}
	if known == h {
		return r.ctx.stackedBits(h.layer), nil
	}
	if known.layer != layerLink || h.layer != layerLink {
		return 0, errConflict(known, h, pos)
	}
	return r.stack(known, h, pos)
}

// errConflict refuses a header that excludes what the rule matches.
func errConflict(known, h *header, pos syntax.Pos) error {
	return errorAt(pos, "conflicting protocols: the rule matches %s, and %s cannot match then", known.name, h.name)
}

// requireLower matches for a header of a layer that nothing is known of.
func (r *ruleCompiler) requireLower(h *header, pos syntax.Pos) error {
	if h.layer == layerLink {
		return r.requireEther(pos)
	}
	lower := r.ctx.at(h.layer - 1)
	switch {
	case lower == nil:
		var err error
		if lower, err = r.requireNetwork(h, pos); err != nil {
			return err
		}
	case lower == &headerEther && r.ctx.family == nft.FamilyBridge && (h == &headerIP || h == &headerIP6):
		// By meta protocol nft matches packets in tagged frames too.
		lower = &headerLink
	}
	return r.depend(lower, h, pos)
}

// requireNetwork returns the network protocol that carries a transport
// protocol, if none is known. Of ICMP it is known without a match, so that the
// network protocol is matched too; of others it can be any.
func (r *ruleCompiler) requireNetwork(h *header, pos syntax.Pos) (*header, error) {
	var network *header
	switch h {
	case &headerICMP, &headerIGMP:
		network = &headerIP
	case &headerICMPv6:
		network = &headerIP6
	default:
		return &headerService, nil
	}
	return network, r.depend(r.ctx.at(layerLink), network, pos)
}

// requireEther matches for packets that came in with an Ethernet header.
func (r *ruleCompiler) requireEther(pos syntax.Pos) error {
	return r.prependMatch(r.metaTerm("iiftype", pos), arphrdEther)
}

// depend matches that a header carries another.
func (r *ruleCompiler) depend(lower, h *header, pos syntax.Pos) error {
	num, ok := lower.number(h)
	if !ok {
		return errorAt(pos, "conflicting protocols: %s cannot be in %s", h.name, lower.name)
	}
	if lower.key != "" {
		return r.prependMatch(r.metaTerm(lower.key, pos), num)
	}
	return r.dependOnField(num, pos, lower)
}

// dependOnField matches the field of a header that says what it carries.
func (r *ruleCompiler) dependOnField(num uint64, pos syntax.Pos, h *header) error {
	offset, err := r.locate(h, pos)
	if err != nil {
		return err
	}
	return r.prependMatch(newPayload(pos, h, h.protocolField(), offset), num)
}

// metaTerm returns a meta selector.
func (r *ruleCompiler) metaTerm(name string, pos syntax.Pos) *metaTerm {
	key := metaByName(name)
	return &metaTerm{termInfo{pos: pos, typ: key.typ, bits: key.bits, width: key.bits, order: key.order}, key}
}

// prependMatch adds the dependency that a selector has a value, and learns
// from it.
func (r *ruleCompiler) prependMatch(left term, num uint64) error {
	m := &matchStmt{left: left, op: "==", right: &constTerm{*left.info(), value{lo: num}}}
	r.prepend(m)
	return r.learnValue(left, num)
}

// stack resolves that a link header is wanted where the rule matches another:
// the header is behind that one, or was in front of it.
func (r *ruleCompiler) stack(known, h *header, pos syntax.Pos) (uint32, error) {
	lower := known
	switch {
	case known == &headerInet || known == &headerLink:
		// Packets of these tables need not have an Ethernet header at all.
		if err := r.requireEther(pos); err != nil {
			return 0, err
		}
		lower = h
	case slices.Contains(r.ctx.stacked, h):
		return 0, nil
	}
	num, ok := lower.number(h)
	if !ok || r.ctx.at(layerNetwork) != nil {
		if known = r.ctx.at(layerLink); known == h {
			return 0, nil
		}
		return 0, errConflict(known, h, pos)
	}
	return r.stackOn(r.ctx.at(layerLink), num, pos)
}

// stackOn matches that a link header carries one with a number, and returns
// where that begins.
func (r *ruleCompiler) stackOn(known *header, num uint64, pos syntax.Pos) (uint32, error) {
	if err := r.dependOnField(num, pos, known); err != nil {
		return 0, err
	}
	return r.ctx.stackedBits(layerLink), nil
}
