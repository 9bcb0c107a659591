package decompile

import (
	"math/big"
	"slices"

	google "github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/selector"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/syntax"
)

var compareWords = map[google.CmpOp]string{
	google.CmpOpEq: "", google.CmpOpNeq: "!=", google.CmpOpLt: "<", google.CmpOpLte: "<=", google.CmpOpGt: ">", google.CmpOpGte: ">=",
}

func (d *draft) match(v *value, op string, right func(*value) syntax.Expr) *syntax.Match {
	in := *v
	d.resolve(&in)
	m := &syntax.Match{Left: in.expr(), Op: op, Right: right(&in)}
	requireEqual(m)
	d.add(m)
	return m
}

func requireEqual(m *syntax.Match) {
	if _, ok := m.Left.(*syntax.Binary); ok && m.Op == "" {
		m.Op = "=="
	}
}

// Two comparisons with the ends of a range become one.
func (d *draft) between(first, second expr.Expr) bool {
	a, ok1 := expr.Unwrap(first).(*google.Cmp)
	b, ok2 := expr.Unwrap(second).(*google.Cmp)
	if !ok1 || !ok2 || a.Op != google.CmpOpGte || b.Op != google.CmpOpLte || a.Register != b.Register {
		return false
	}
	d.match(d.get("cmp", a.Register), "", func(v *value) syntax.Expr { return v.span(a.Data, b.Data) })
	return true
}

func (d *draft) compare(e *google.Cmp) {
	v := d.get("cmp", e.Register)
	if v.data != nil || len(e.Data) == 0 || len(e.Data) > 16 {
		fail("cmp", "the operand is a constant")
	}
	if compareWords[e.Op] == "" && e.Op != google.CmpOpEq {
		fail("cmp", "the operator is not known")
	}
	if !d.comparePayload(v, e.Op, e.Data) {
		d.equal(v, e.Op, e.Data)
	}
}

func (d *draft) equal(v *value, op google.CmpOp, data []byte) {
	in := *v
	d.resolve(&in)
	word, isEqual := compareWords[op], op == google.CmpOpEq || op == google.CmpOpNeq
	switch {
	case in.mask != nil && isEqual && d.masked(&in, op, data):
		return
	case in.flags() && in.mask == nil && op == google.CmpOpEq:
		word = "=="
	case in.mask == nil && !in.text() && isEqual && 8*len(data) < int(in.bits)&^7 && in.order == datatype.BigEndian:
		full := append(slices.Clone(data), make([]byte, int(in.bits+7)/8-len(data))...)
		d.match(&in, word, func(v *value) syntax.Expr { return &syntax.Prefix{X: v.constant(full), Len: 8 * len(data)} })
		return
	}
	m := d.match(&in, word, func(v *value) syntax.Expr { return v.constant(data) })
	if op == google.CmpOpEq && len(data) <= 8 {
		d.imply(m, d.learn(&in, in.number(data).Uint64()))
	}
}

func (d *draft) imply(m syntax.Stmt, h *selector.Header) {
	if h != nil && !slices.ContainsFunc(d.implied, func(i *implied) bool { return i.match == m }) {
		d.implied = append(d.implied, &implied{match: m, header: h})
	}
}

// masked adds the comparison only if nft has a special form.
func (d *draft) masked(v *value, op google.CmpOp, data []byte) bool {
	mask, n, plain := v.number(v.mask), v.number(data), *v
	plain.mask, plain.xor = nil, nil
	word := compareWords[op]
	switch xor := v.number(v.xor); {
	case xor.Sign() != 0 || len(v.mask) != len(data):
		return false
	case v.flags() && n.Sign() == 0 && op == google.CmpOpNeq:
		d.match(&plain, "", func(p *value) syntax.Expr { return p.list(v.mask) })
	case v.flags() && n.Sign() == 0 && op == google.CmpOpEq:
		d.match(&plain, "!", func(p *value) syntax.Expr { return p.list(v.mask) })
	case v.flags() && several(mask) > 1:
		d.match(&plain, word, func(p *value) syntax.Expr { return &syntax.Masked{Value: p.list(data), Mask: p.list(v.mask)} })
	case !v.flags() && isPrefix(mask, uint(v.bits)) && (v.typ == datatype.IPv4Addr || v.typ == datatype.IPv6Addr):
		length := int(v.bits) - int(mask.TrailingZeroBits())
		if mask.Sign() == 0 {
			length = 0
		} else if length%8 == 0 {
			return false // nft compares only the bytes of the prefix
		}
		d.match(&plain, word, func(p *value) syntax.Expr { return &syntax.Prefix{X: p.constant(data), Len: length} })
	default:
		return false
	}
	return true
}

func several(n *big.Int) (count int) {
	for i := range n.BitLen() {
		count += int(n.Bit(i))
	}
	return count
}

func isPrefix(mask *big.Int, bits uint) bool {
	low := mask.TrailingZeroBits()
	return mask.Sign() == 0 || mask.Cmp(new(big.Int).Lsh(ones(bits-min(low, bits)), low)) == 0
}

func (d *decompiler) set(name, set string) *set.Set {
	s, ok := d.scope.Set(set)
	if !ok || s == nil {
		fail(name, "there is no set %s", set)
	}
	return s
}

func (d *decompiler) lookup(e *google.Lookup) {
	s := d.set("lookup", e.SetName)
	v := d.keyOf("lookup", e.SourceRegister, s.Key)
	table := d.table(s, v)
	switch {
	case !e.IsDestRegSet:
		m := &syntax.Match{Left: v.expr(), Right: table}
		if e.Invert {
			m.Op = "!="
		}
		if s.Flags&(set.FlagAnonymous|set.FlagInterval) == set.FlagAnonymous {
			requireEqual(m)
		}
		d.add(m)
		d.learnSet(v, m, s)
	case e.DestRegister == unix.NFT_REG_VERDICT:
		d.add(&syntax.Vmap{Key: v.expr(), Table: table})
	default:
		out := &value{x: &syntax.Map{Key: v.expr(), Table: table}, bits: 8 * s.Data.Len, order: datatype.BigEndian}
		if parts, err := s.Data.Resolve(); err == nil && len(parts) == 1 {
			out.typ, out.order = parts[0].Type, parts[0].Order
		}
		d.put("lookup", e.DestRegister, out)
	}
}

func (d *decompiler) learnSet(v *value, m *syntax.Match, s *set.Set) {
	for _, e := range d.elements[s.Name] {
		if m.Op != "" || len(v.parts) > 0 || len(e.Key) == 0 || len(e.Key) > 8 || v.field == nil || v.field.Name != "type" {
			return
		}
		// an echo and its reply have the same fields
		d.imply(m, d.learn(v, v.number([]byte(e.Key)).Uint64()))
	}
}

func (d *decompiler) table(s *set.Set, key *value) syntax.Expr {
	if s.Flags&set.FlagAnonymous == 0 {
		return &syntax.SetRef{Name: s.Name}
	}
	elements, err := d.scope.Elements(s)
	if err != nil || len(elements) == 0 {
		fail("lookup", "the elements of set %s are not known", s.Name)
	}
	d.elements[s.Name] = elements
	out := &syntax.Set{}
	for _, e := range sorted(elements, key, s.Flags&set.FlagInterval != 0) {
		x := &syntax.Elem{Key: &syntax.Wildcard{}, Comment: e.Comment}
		if e.Key != "" {
			x.Key = &syntax.Const{Text: d.element(s, key, e)}
		}
		for _, text := range e.Stateful() {
			stmts, err := syntax.ParseStateful(text)
			if err != nil {
				panic(failure{err})
			}
			x.Stmts = append(x.Stmts, stmts...)
		}
		if s.Map {
			x.Value = &syntax.Const{Text: s.FormatData(e), Quoted: s.Object != ""}
		}
		out.Elems = append(out.Elems, x)
	}
	return out
}

// sorted returns the elements in the order of nft's list: by number, in concatenations in the
// host's byte order.
func sorted(elements []set.Element, key *value, interval bool) []set.Element {
	order := value{order: datatype.HostEndian}
	if len(key.parts) == 0 && (interval || key.order != datatype.HostEndian) {
		order.order = datatype.BigEndian
	}
	return slices.SortedStableFunc(slices.Values(elements), func(a, b set.Element) int {
		if a.Key == "" || b.Key == "" {
			return len(b.Key) - len(a.Key)
		}
		return order.number([]byte(a.Key)).Cmp(order.number([]byte(b.Key)))
	})
}

func (d *decompiler) element(s *set.Set, key *value, e set.Element) string {
	own := func(v *value) bool { return v.width != 0 || v.raw || v.typ == datatype.Bitmask }
	if !own(key) && !slices.ContainsFunc(key.parts, own) {
		return s.FormatKey(e)
	}
	values, text, at := key.parts, "", 0
	if len(values) == 0 {
		values = []*value{key}
	}
	for i, v := range values {
		n := int(v.bits+7) / 8
		if at+n > len(e.Key) {
			fail("lookup", "the key of set %s has another width", s.Name)
		}
		if i > 0 {
			text += " . "
		}
		isRange := len(e.KeyEnd) == len(e.Key) && e.KeyEnd[at:at+n] != e.Key[at:at+n]
		if text += v.format([]byte(e.Key[at:at+n]), isRange); isRange {
			text += "-" + v.format([]byte(e.KeyEnd[at:at+n]), true)
		}
		at += (n + 3) &^ 3
	}
	return text
}
