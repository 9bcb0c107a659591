package admission

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/weft-proxy/weft/aggregator/access"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
)

// textPerByte bounds the size of a snapshot's messages per packed byte: an IPv6 address of 16 bytes
// has up to 39 bytes as text, and an element has more bytes in a message. textBase is for small
// snapshots.
const (
	textPerByte = 8
	textBase    = 64 << 10
)

// MaxEncoded returns the maximum size in bytes of a snapshot's messages. p may be nil.
func MaxEncoded(p *access.Publisher) int {
	if p == nil || p.Limits.Most[access.LimitBytes] == 0 {
		return MaxBytes
	}
	return min(MaxBytes, textBase+textPerByte*p.Limits.Most[access.LimitBytes])
}

// commasBase is the number of commas in a file that need not separate elements, such as in flags
// and concatenations. Half the number of elements is added.
const commasBase = 1024

// unpacked counts the content of a snapshot's parts before unpacking.
type unpacked struct {
	rules, elements, bytes, commas, chains, inBraces, sets int
	// a limit was exceeded
	refused bool
}

// limited returns nil for a publisher without limits and for the state directory.
func (s *sender) limited() *access.Publisher {
	if s.cfg.Stored {
		return nil
	}
	return s.cfg.Access.Publisher(s.key.Publisher)
}

// add counts a part of a snapshot without its tables. rules and sets are the publisher's limits.
func (n *unpacked) add(f *weftv1.Fragment, rules, sets int) {
	n.bytes += max(0, proto.Size(f)-textBase) / textPerByte
	// Elements of a file have at least a comma each, as do the few flags and devices.
	n.commas += strings.Count(f.GetNft(), ",")
	// Braces that belong neither to a set nor to a rule belong to a chain.
	if rules > 0 {
		n.inBraces = max(0, strings.Count(f.GetNft(), "{")-sets-2*rules-commasBase)
	}
}

// checkTables compares a part of an update with the publisher's limits before unpacking, so that an
// excessive update does not fill the memory. Repeated elements are not known yet, and count.
func (b *Builder) checkTables(tables []*weftv1.Table) bool {
	p := b.limited()
	if p == nil {
		return true
	}
	n := &b.unpacked
	for _, t := range tables {
		n.rules += len(t.GetObjects()) + len(t.GetFlowtables())
		n.chains += len(t.GetChains())
		n.sets += len(t.GetSets()) + len(t.GetMaps())
		for _, s := range slices.Concat(t.GetSets(), t.GetMaps()) {
			n.elements += len(s.GetElements()) + weftv1.CountPacked(s.GetPacked())
		}
		for _, c := range t.GetChains() {
			n.rules += len(c.GetRules())
		}
	}
	for _, c := range []struct {
		limit access.Limit
		n     int
		// current content; the fragment may have as much again
		held uint64
	}{
		{access.LimitElements, max(n.elements, n.commas*2/3-commasBase), b.status.GetElements()},
		{access.LimitRules, n.rules, uint64(b.status.GetRules()) + uint64(b.status.GetObjects())},
		{access.LimitBytes, n.bytes, 0},
		{access.LimitChains, max(n.chains, n.inBraces), uint64(b.status.GetChains())},
		{access.LimitSets, n.sets, uint64(b.status.GetSets())},
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

// checkRights puts its violations before all others.
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
			bad.refused(tableName(t.Table), r)
			continue
		}
		checkDeclarations(p, t, &bad)
		for _, c := range t.chains {
			checkChain(p, t.Table, c, &bad)
		}
	}
	bad.merge(&b.bad)
	b.bad = bad
}

// Held returns a publisher's current content, by limit.
func Held(u desired.Usage) map[access.Limit]int {
	return map[access.Limit]int{
		access.LimitFragments: u.Fragments, access.LimitRules: u.Rules + u.Objects, access.LimitElements: u.Elements + u.Anonymous,
		access.LimitBytes: u.Bytes, access.LimitChains: u.Chains, access.LimitBaseChains: u.BaseChains,
		access.LimitSets: u.Sets, access.LimitMemory: u.Memory,
	}
}

// OverLimit returns a [desired.Limit] for a publisher's content after an update. Its error is a
// *[RejectedError].
func OverLimit(p *access.Publisher, key desired.Key) desired.Limit {
	return func(before, after desired.Usage, effect desired.Effect) error {
		var bad violations
		held, holds := Held(before), Held(after)
		for _, l := range access.Counted() {
			bad.refused(nil, p.Holds(l, held[l], holds[l]))
		}
		bad.refused(nil, p.Logs(before.LogRate, after.LogRate))
		bad.refused(nil, p.HookChains(effect.Hook, effect.HookChains))
		packet := func(limit access.Limit, path *desired.Path) {
			if path.Time > 0 {
				bad.refused(PlaceName(path.Chain), p.Packet(limit, path.Time, path.Hook, func() string {
					return fmt.Sprintf("%v of it in %s", time.Duration(path.ChainTime), strings.Join(path.Chains(), ", then "))
				}))
			}
		}
		packet(access.LimitPacket, &effect.Path)
		packet(access.LimitEveryPacket, &effect.Every)
		return bad.err(key)
	}
}

// OverRights is OverLimit for the state directory: an excess over a limit may come back, but the
// publisher needs the right to log as much as all its fragments do.
func OverRights(p *access.Publisher, key desired.Key) desired.Limit {
	return func(before, after desired.Usage, _ desired.Effect) error {
		var bad violations
		bad.refused(nil, p.Logs(before.LogRate, after.LogRate))
		return bad.err(key)
	}
}
