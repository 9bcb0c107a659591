package aggregator

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/weft-proxy/weft/aggregator/access"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// textPerByte bounds how much longer a snapshot may be as it is sent than what
// it packs to: an IPv6 address of 16 bytes has up to 39 as text, and every
// element some of its message's. textBase is for what is small.
const (
	textPerByte = 8
	textBase    = 64 << 10
)

// refused records what the update's publisher may not do.
func (v *violations) refused(object string, r *access.Refusal) {
	if r == nil {
		return
	}
	if !slices.ContainsFunc(v.refusals, func(o *access.Refusal) bool { return o.Limit == r.Limit }) {
		v.refusals = append(v.refusals, r)
	}
	v.add(reasonOf(r.Limit), object, r.Text)
}

func reasonOf(l access.Limit) weftv1.Reason {
	if l.Right() {
		return weftv1.Reason_REASON_PERMISSION
	}
	return weftv1.Reason_REASON_LIMIT
}

// bulk judges a part of a snapshot before it is unpacked: one that is more
// than its publisher may hold would only fill the memory. What repeated
// elements come to is not known yet, so they count.
func (a *admission) bulk(f *weftv1.Fragment) bool {
	p := a.access.Publisher(a.key.Publisher)
	if p == nil {
		return true
	}
	for _, t := range f.GetTables() {
		a.brought.rules += len(t.GetObjects()) + len(t.GetFlowtables())
		for _, s := range t.GetSets() {
			a.brought.elements += len(s.GetElements())
		}
		for _, s := range t.GetMaps() {
			a.brought.elements += len(s.GetElements())
		}
		for _, c := range t.GetChains() {
			a.brought.rules += len(c.GetRules())
		}
	}
	a.brought.bytes += max(0, proto.Size(f)-textBase) / textPerByte
	for _, b := range []struct {
		limit access.Limit
		n     int
		// held is what the fragment has already, and may have again.
		held uint64
	}{
		{access.LimitElements, a.brought.elements, a.held.GetElements()},
		{access.LimitRules, a.brought.rules, uint64(a.held.GetRules()) + uint64(a.held.GetObjects())},
		{access.LimitBytes, a.brought.bytes, 0},
	} {
		if uint64(b.n) <= b.held { //nolint:gosec // a count
			continue
		}
		r := p.Brings(b.limit, b.n)
		if r == nil {
			continue
		}
		if !a.brought.refused {
			a.bad.refused("", r)
		}
		a.brought.refused = true
		return false
	}
	return true
}

// brought counts what the parts of a snapshot bring.
type brought struct {
	rules, elements, bytes int
	// refused is true once it was too much.
	refused bool
}

// guard judges what the update asks for by the rights of its publisher. What
// it refuses comes before what else is wrong with the update.
func (a *admission) guard() {
	p := a.access.Publisher(a.key.Publisher)
	if p == nil {
		return
	}
	var bad violations
	if a.snapshot {
		bad.refused("", p.Priority(a.priority))
	}
	for _, t := range a.tables {
		table := "table " + t.id.String()
		if r := p.Table(t.id); r != nil {
			// The rest is of no interest.
			bad.refused(table, r)
			continue
		}
		for _, c := range t.chains {
			a.guardChain(p, table+" chain "+clip(c.source.Name), c, &bad)
		}
	}
	bad.merge(&a.bad)
	bad.refusals = append(bad.refusals, a.bad.refusals...)
	a.bad = bad
}

func (a *admission) guardChain(p *access.Publisher, object string, c *chainAdmission, bad *violations) {
	if b := c.decl.Base; b != nil {
		for _, r := range p.Chain(c.source.Hook, b.Type, b.Priority) {
			bad.refused(object, r)
		}
	}
	r := p.NAT()
	if r == nil || bad.full() {
		return
	}
	for _, rule := range c.out {
		if rule.Translates() {
			// Once for each chain is enough.
			bad.refused(object, r)
			return
		}
	}
}
