package compile

import (
	"cmp"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/selector"
	"github.com/weft-proxy/weft/nft/set"
)

// In bits; the first is the kernel's fast path.
const (
	fastMerge = 32
	maxMerge  = 128
)

// reduce removes redundant comparisons and merges adjacent header fields, like nft.
//
// It never merges across a statement, such as a counter, that only packets matching the first
// comparison may run. nft 1.0.6 merges the only comparison before a statement with the first one
// after it, later versions do not.
func (r *ruleCompiler) reduce() {
	var drop []int
	var run []int
	flush := func() {
		drop = append(drop, r.merge(run)...)
		run = run[:0]
	}
	for i, s := range r.stmts {
		m, ok := s.(*matchStmt)
		if !ok || r.hasEffect(m) {
			flush()
			continue
		}
		right, ok := m.right.(*constTerm)
		if !ok {
			continue
		}
		switch left := m.left.(type) {
		case *payloadTerm:
			if m.op == "==" || m.op == "!=" || m.op == "any" {
				run = append(run, i)
			}
		case *keyTerm:
			if m.op == "==" && !left.ct && i < len(r.stmts)-1 && r.saysNothing(left.key, right.v.lo) {
				drop = append(drop, i)
			}
		}
	}
	flush()
	if len(drop) == 0 {
		return
	}
	kept := r.stmts[:0]
	for i, s := range r.stmts {
		if !slices.Contains(drop, i) {
			kept = append(kept, s)
		}
	}
	r.stmts = kept
}

func (r *ruleCompiler) hasEffect(m *matchStmt) bool {
	if s, ok := m.right.(*setTerm); ok {
		stateful := func(e set.Element) bool { return e.State != "" }
		if len(s.set.Stateful) > 0 || s.id != 0 && slices.ContainsFunc(r.out.Anonymous[s.id-1].Elements, stateful) {
			return true
		}
	}
	return slices.ContainsFunc(partsOf(m.left), counts)
}

// counts reports an incremental generator.
func counts(t term) bool {
	switch t := t.(type) {
	case *numberTerm:
		return t.word == "numgen" && !t.random
	case *binaryTerm:
		return counts(t.x)
	case *swapTerm:
		return counts(t.x)
	default: // stateless
		return false
	}
}

func (r *ruleCompiler) saysNothing(key *selector.Key, num uint64) bool {
	if key.Name != "protocol" {
		return false
	}
	return r.ctx.family == nft.FamilyIP && num == unix.ETH_P_IP || r.ctx.family == nft.FamilyIP6 && num == unix.ETH_P_IPV6
}

// merge returns the indices of the redundant comparisons.
func (r *ruleCompiler) merge(run []int) (drop []int) {
	if len(run) < 2 {
		return nil
	}
	at := slices.Clone(run)
	field := func(i int) *payloadTerm { return r.stmts[i].(*matchStmt).left.(*payloadTerm) }
	slices.SortStableFunc(at, func(a, b int) int {
		return cmp.Or(cmp.Compare(field(a).layer, field(b).layer), cmp.Compare(field(a).offset, field(b).offset))
	})
	last := at[0]
	for _, this := range at[1:] {
		a, b := r.stmts[last].(*matchStmt), r.stmts[this].(*matchStmt)
		if !mergeable(a, b) {
			last = this
			continue
		}
		left, right := joined(a, b)
		keep, gone := last, this
		if field(this).field.Protocol {
			// The next-protocol field keeps its place.
			keep, gone = this, last
			left.field = field(this).field
		}
		m := r.stmts[keep].(*matchStmt)
		m.left, m.op, m.right = left, equality(m.op), right
		drop = append(drop, gone)
		last = keep
	}
	return drop
}

// nft does not merge two fast comparisons into a slow one.
func mergeable(a, b *matchStmt) bool {
	x, y := a.left.(*payloadTerm), b.left.(*payloadTerm)
	switch {
	case equality(a.op) != equality(b.op), x.layer != y.layer, x.offset+x.bits != y.offset:
		return false
	case x.offset%8 != 0, x.bits%8 != 0, y.bits%8 != 0, x.bits+y.bits > maxMerge:
		return false
	default:
		return x.bits+y.bits <= fastMerge || x.layer == selector.LayerLink || x.bits > fastMerge || y.bits > fastMerge
	}
}

// "any of these flags" becomes "exactly these flags".
func equality(op string) string {
	if op == "any" {
		return "=="
	}
	return op
}

func joined(a, b *matchStmt) (*payloadTerm, *constTerm) {
	x, y := a.left.(*payloadTerm), b.left.(*payloadTerm)
	left := *x
	left.bits += y.bits
	left.width = left.bits
	v, w := a.right.(*constTerm), b.right.(*constTerm)
	right := *v
	right.bits, right.width = left.bits, left.bits
	right.order = x.order
	right.v = v.v.shl(y.bits).or(w.v)
	return &left, &right
}
