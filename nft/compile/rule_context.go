package compile

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/selector"
	"github.com/weft-proxy/weft/nft/syntax"
)

// context holds the protocols matched so far, which decide a selector's dependencies.
type context struct {
	family nft.Family
	layers [selector.Layers]knownLayer
	// link headers in front of the known one: Ethernet and outer tags
	stacked []*selector.Header
	// 0 if not matched; an echo reply counts as a request because both have the same fields
	icmpType uint64
}

type knownLayer struct {
	// the protocol matched last
	header *selector.Header
	// another possible protocol, or nil
	first *selector.Header
}

func newContext(family nft.Family) context {
	c := context{family: family}
	switch family {
	case nft.FamilyIP:
		c.know(&selector.HeaderIP)
	case nft.FamilyIP6:
		c.know(&selector.HeaderIP6)
	case nft.FamilyInet:
		c.know(&selector.HeaderInet)
	case nft.FamilyARP:
		c.know(&selector.HeaderARP)
	case nft.FamilyBridge:
		c.know(&selector.HeaderEther)
	default:
		c.know(&selector.HeaderLink)
	}
	return c
}

func (c *context) know(h *selector.Header) { c.knowAt(h.Layer, h) }

// knowAt takes selector.HeaderUnknown for any layer. Below the transport layer nft remembers only
// the last header.
func (c *context) knowAt(l selector.Layer, h *selector.Header) {
	k := &c.layers[l]
	if l == selector.LayerTransport && k.header != nil && k.header != h && k.first == nil {
		k.first = k.header
	}
	k.header = h
}

func (c *context) at(l selector.Layer) *selector.Header { return c.layers[l].header }

// ambiguous returns another possible protocol of h's layer, or nil.
func (c *context) ambiguous(h *selector.Header) *selector.Header {
	k := c.layers[h.Layer]
	switch {
	case k.first == nil:
		return nil
	case k.header != h:
		return k.header
	default:
		return k.first
	}
}

// stackedBits returns the length of the stacked headers in bits.
func (c *context) stackedBits(l selector.Layer) uint32 {
	n := uint32(0)
	if l == selector.LayerLink {
		for _, h := range c.stacked {
			n += h.Length
		}
	}
	return n
}

// locate ensures that the rule matches a header before the current statement, and returns its
// offset in its layer, in bits.
func (r *ruleCompiler) locate(h *selector.Header, pos syntax.Pos) uint32 {
	if h.Raw {
		return 0
	}
	known := r.ctx.at(h.Layer)
	if known == nil {
		r.requireLower(h, pos)
		if known = r.ctx.at(h.Layer); known == h {
			return 0
		}
		if num, ok := known.Number(h); ok && h.Layer == selector.LayerLink {
			return r.stackOn(known, num, pos)
		}
	}
	if other := r.ctx.ambiguous(h); other != nil {
		failConflict(other, h, pos)
	}
	if known == h {
		return r.ctx.stackedBits(h.Layer)
	}
	if known.Layer != selector.LayerLink || h.Layer != selector.LayerLink {
		failConflict(known, h, pos)
	}
	return r.stack(known, h, pos)
}

func failConflict(known, h *selector.Header, pos syntax.Pos) {
	fail(pos, "conflicting protocols: the rule matches %s, and %s cannot match then", known.Name, h.Name)
}

// requireLower adds the match of h in the layer below, when h's layer has no known protocol.
func (r *ruleCompiler) requireLower(h *selector.Header, pos syntax.Pos) {
	if h.Layer == selector.LayerLink {
		r.requireEther(pos)
		return
	}
	lower := r.ctx.at(h.Layer - 1)
	switch {
	case lower == nil:
		lower = r.requireNetwork(h, pos)
	case lower == &selector.HeaderEther && r.ctx.family == nft.FamilyBridge && (h == &selector.HeaderIP || h == &selector.HeaderIP6):
		// With meta protocol, nft matches packets in tagged frames too.
		lower = &selector.HeaderLink
	}
	r.depend(lower, h, pos)
}

// ICMP and IGMP imply a network protocol, which is matched too; others can have any.
func (r *ruleCompiler) requireNetwork(h *selector.Header, pos syntax.Pos) *selector.Header {
	var network *selector.Header
	switch h {
	case &selector.HeaderICMP, &selector.HeaderIGMP:
		network = &selector.HeaderIP
	case &selector.HeaderICMPv6:
		network = &selector.HeaderIP6
	default:
		return &selector.HeaderService
	}
	r.depend(r.ctx.at(selector.LayerLink), network, pos)
	return network
}

func (r *ruleCompiler) requireEther(pos syntax.Pos) {
	r.prependMatch(metaTerm("iiftype", pos), unix.ARPHRD_ETHER)
}

func (r *ruleCompiler) depend(lower, h *selector.Header, pos syntax.Pos) {
	num, ok := lower.Number(h)
	if !ok {
		fail(pos, "conflicting protocols: %s cannot be in %s", h.Name, lower.Name)
	}
	if lower.Key != "" {
		r.prependMatch(metaTerm(lower.Key, pos), num)
		return
	}
	r.dependOnField(num, pos, lower)
}

func (r *ruleCompiler) dependOnField(num uint64, pos syntax.Pos, h *selector.Header) {
	offset := r.locate(h, pos)
	r.prependMatch(newPayload(pos, h, h.ProtocolField(), offset), num)
}

func metaTerm(name string, pos syntax.Pos) *keyTerm {
	key := selector.MetaKeys.ByName("", name)
	return &keyTerm{termInfo: keyInfo(pos, key), key: key}
}

func (r *ruleCompiler) prependMatch(left term, num uint64) {
	m := &matchStmt{left: left, op: "==", right: &constTerm{*left.info(), value{lo: num}}}
	r.add(m)
	r.learnValue(left, num)
}

// stack locates a link header before or after the matched one.
func (r *ruleCompiler) stack(known, h *selector.Header, pos syntax.Pos) uint32 {
	lower := known
	switch {
	case known == &selector.HeaderInet || known == &selector.HeaderLink:
		// Packets of these tables need not have an Ethernet header.
		r.requireEther(pos)
		lower = h
	case slices.Contains(r.ctx.stacked, h):
		return 0
	}
	num, ok := lower.Number(h)
	if !ok || r.ctx.at(selector.LayerNetwork) != nil {
		if known = r.ctx.at(selector.LayerLink); known == h {
			return 0
		}
		failConflict(known, h, pos)
	}
	return r.stackOn(r.ctx.at(selector.LayerLink), num, pos)
}

// stackOn returns the offset of the next link header.
func (r *ruleCompiler) stackOn(known *selector.Header, num uint64, pos syntax.Pos) uint32 {
	r.dependOnField(num, pos, known)
	return r.ctx.stackedBits(selector.LayerLink)
}
