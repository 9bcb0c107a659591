package admission

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/weft-proxy/weft/aggregator/access"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
)

// textPerByte bounds how much longer the messages of a snapshot may be than what
// they pack to: an IPv6 address of 16 bytes has up to 39 bytes as text, and each
// element has some bytes of its message. textBase is allowed in addition, for
// small snapshots.
const (
	textPerByte = 8
	textBase    = 64 << 10
)

// MaxEncoded returns how many bytes the messages of a snapshot of a publisher may have.
// p is nil for a publisher without limits.
func MaxEncoded(p *access.Publisher) int {
	if p == nil || p.Limits.Most[access.LimitBytes] == 0 {
		return MaxBytes
	}
	return min(MaxBytes, textBase+textPerByte*p.Limits.Most[access.LimitBytes])
}

// unpacked counts what the parts of a snapshot have before they are unpacked.
type unpacked struct {
	rules, elements, bytes int
	// refused is true after it exceeded a limit.
	refused bool
}

// checkSize compares a part of a snapshot with the publisher's limits before it
// is unpacked, because a snapshot that exceeds them would only fill the memory.
// Repeated elements count, because they are not known yet.
func (b *Builder) checkSize(f *weftv1.Fragment) bool {
	p := b.cfg.Access.Publisher(b.key.Publisher)
	if p == nil || b.cfg.Stored {
		return true
	}
	n := &b.unpacked
	for _, t := range f.GetTables() {
		n.rules += len(t.GetObjects()) + len(t.GetFlowtables())
		for _, s := range slices.Concat(t.GetSets(), t.GetMaps()) {
			n.elements += len(s.GetElements())
		}
		for _, c := range t.GetChains() {
			n.rules += len(c.GetRules())
		}
	}
	n.bytes += max(0, proto.Size(f)-textBase) / textPerByte
	for _, c := range []struct {
		limit access.Limit
		n     int
		// held is what the fragment has already. It may have as much again.
		held uint64
	}{
		{access.LimitElements, n.elements, b.status.GetElements()},
		{access.LimitRules, n.rules, uint64(b.status.GetRules()) + uint64(b.status.GetObjects())},
		{access.LimitBytes, n.bytes, 0},
	} {
		if r := p.Brings(c.limit, c.n); r != nil && uint64(c.n) > c.held { //nolint:gosec // a count
			if !n.refused {
				b.bad.refused(nil, r)
			}
			n.refused = true
			return false
		}
	}
	return true
}

// checkRights compares what the update asks for with the rights of its
// publisher. The violations that it finds come before all others.
func (b *Builder) checkRights() {
	p := b.cfg.Access.Publisher(b.key.Publisher)
	if p == nil {
		return
	}
	var bad violations
	if b.snapshot {
		bad.refused(nil, p.Priority(b.priority))
	}
	for _, t := range b.tables {
		if r := p.Table(t.Table); r != nil {
			// The table's content does not matter then.
			bad.refused(tableName(t.Table), r)
			continue
		}
		checkDeclarations(p, t, &bad)
		for _, c := range t.chains {
			checkChain(p, t.Table, c, &bad)
		}
	}
	bad.merge(&b.bad)
	bad.refusals = append(bad.refusals, b.bad.refusals...)
	b.bad = bad
}

// OverLimit returns a [desired.Limit] that compares what a publisher would hold
// after an update of a fragment with the publisher's limits. Its error is a
// *[RejectedError].
func OverLimit(p *access.Publisher, key desired.Key) desired.Limit {
	return func(before, after desired.Usage) error {
		var bad violations
		for _, l := range []struct {
			limit         access.Limit
			before, after int
		}{
			{access.LimitFragments, before.Fragments, after.Fragments},
			{access.LimitRules, before.Rules + before.Objects, after.Rules + after.Objects},
			{access.LimitElements, before.Elements, after.Elements},
			{access.LimitBytes, before.Bytes, after.Bytes},
		} {
			bad.refused(nil, p.Holds(l.limit, l.before, l.after))
		}
		bad.refused(nil, p.Logs(before.LogRate, after.LogRate))
		return bad.err(key)
	}
}
