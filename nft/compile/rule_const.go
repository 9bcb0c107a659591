package compile

import (
	"slices"
	"strings"

	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/selector"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/syntax"
)

// want is the type that a constant takes from its context.
type want struct {
	typ   *datatype.Type
	width uint32
	order datatype.Order
	raw   bool
	// replaces the other fields for concatenations
	parts []want
	// greatest value if limited
	max     uint64
	limited bool
}

func wantLike(t term) want {
	if c, ok := t.(*concatTerm); ok {
		w := want{parts: make([]want, len(c.parts))}
		for i, p := range c.parts {
			w.parts[i] = wantLike(p)
			// nft checks the range of a generator only outside concatenations.
			w.parts[i].limited = false
		}
		return w
	}
	i := t.info()
	w := want{typ: i.typ, width: i.width, order: i.order}
	w.max, w.limited = maxValue(t)
	return w
}

func wantOf(t *set.Type) (want, error) {
	parts, err := t.Resolve()
	if err != nil {
		return want{}, err
	}
	if len(parts) == 1 {
		return wantPart(parts[0]), nil
	}
	w := want{parts: make([]want, len(parts))}
	for i, p := range parts {
		w.parts[i] = wantPart(p)
	}
	return w, nil
}

func wantPart(p set.Part) want { return want{typ: p.Type, width: uint32(p.Bits), order: p.Order} }

func (w want) name() string {
	if w.typ != nil {
		return w.typ.Name
	}
	names := make([]string, len(w.parts))
	for i, p := range w.parts {
		names[i] = p.name()
	}
	return strings.Join(names, " . ")
}

func (w want) single() []want {
	if w.parts != nil {
		return w.parts
	}
	return []want{w}
}

func (w want) matches(t term) bool {
	return slices.EqualFunc(w.single(), partsOf(t), func(w want, t term) bool { return w.typ == t.info().typ })
}

func (w want) info(pos syntax.Pos) termInfo {
	return termInfo{pos: pos, typ: w.typ, bits: w.width, width: w.width, order: w.order}
}

func (w want) isString() bool { return w.typ == datatype.IfName || w.typ == datatype.String }

func (r *ruleCompiler) constant(x syntax.Expr, w want) term {
	if c, ok := x.(*syntax.Concat); ok || w.typ == nil {
		return r.constantConcat(x, c, w)
	}
	switch x := x.(type) {
	case *syntax.Const:
		return r.literal(x, w)
	case *syntax.Prefix:
		return r.prefix(x, w)
	case *syntax.Range:
		from := r.single(x.From, w)
		to := r.single(x.To, w)
		if w.isString() {
			return fail(x.Pos, "a range of %s is not possible", w.typ.Name)
		}
		if from.v.cmp(to.v) > 0 {
			return fail(x.Pos, "range %s ends before it begins", describe(x))
		}
		return &rangeTerm{w.info(x.Pos), from.v, to.v}
	case *syntax.List:
		return r.flagList(x, w)
	case *syntax.Binary:
		return r.constantBinary(x, w)
	default:
		return fail(x.Position(), "%s is not a constant: want a value of type %s", describe(x), w.name())
	}
}

func (r *ruleCompiler) single(x syntax.Expr, w want) *constTerm {
	t := r.constant(x, w)
	c, ok := t.(*constTerm)
	if !ok {
		fail(x.Position(), "%s is more than one value", describe(x))
	}
	return c
}

func (r *ruleCompiler) constantConcat(x syntax.Expr, c *syntax.Concat, w want) term {
	switch {
	case w.typ != nil:
		return fail(x.Position(), "%s is a concatenation: want one %s", describe(x), w.name())
	case c == nil:
		return fail(x.Position(), "%s is one value: want %s", describe(x), w.name())
	case len(c.Parts) != len(w.parts):
		return fail(x.Position(), "%s has %d parts: want %s", describe(x), len(c.Parts), w.name())
	}
	parts := make([]term, len(c.Parts))
	for i, p := range c.Parts {
		parts[i] = r.constant(p, w.parts[i])
	}
	return newConcat(c.Pos, parts)
}

func newConcat(pos syntax.Pos, parts []term) *concatTerm {
	t := &concatTerm{termInfo{pos: pos}, parts}
	for _, p := range parts {
		t.bits += 32 * p.info().slots()
	}
	t.width = t.bits
	return t
}

func (r *ruleCompiler) literal(x *syntax.Const, w want) term {
	if w.isString() {
		return r.text(x, w)
	}
	if w.typ == datatype.Integer && w.width > 64 {
		return wideNumber(x, w)
	}
	typ := w.typ
	if typ == datatype.Boolean && x.Text != "" && '0' <= x.Text[0] && x.Text[0] <= '9' {
		// nft accepts any number that fits, as well as exists and missing.
		typ = datatype.Integer
	}
	var room [16]byte
	b, err := typ.AppendParse(room[:0], x.Text)
	if err != nil {
		return fail(x.Pos, "%s", err)
	}
	if len(b) > 16 {
		return fail(x.Pos, "%s is too long for type %s", describe(x), w.typ.Name)
	}
	v := parseValue(b, typ.Order)
	if v.and(valueMask(w.width).not()) != (value{}) {
		return fail(x.Pos, "value %s is out of range: %d bits hold 0 to %d", x.Text, w.width, valueMask(min(w.width, 64)).lo)
	}
	if w.limited && v.cmp(value{lo: w.max}) > 0 {
		return fail(x.Pos, "value %s is out of range: it can be 0 to %d", x.Text, w.max)
	}
	return &constTerm{w.info(x.Pos), v}
}

// A name such as "eth*" is a prefix.
func (r *ruleCompiler) text(x *syntax.Const, w want) term {
	if !x.Quoted && (x.Text == "exists" || x.Text == "missing") {
		return fail(x.Pos, "%s is not a name: put it into double quotes if you mean one", x.Text)
	}
	if !x.Quoted && datatype.IsKeyword(x.Text, false) {
		return fail(x.Pos, "%s is a keyword: a name is missing before it, or it is a name and needs double quotes", x.Text)
	}
	prefix, wildcard := datatype.IfNamePrefix(x.Text)
	text := x.Text
	if wildcard {
		text = prefix
	}
	if text == "" || text == "*" {
		return fail(x.Pos, "the name is empty: want one such as \"eth0\", or \"eth*\" for all that begin with it")
	}
	if len(x.Text) >= int(w.width/8) {
		return fail(x.Pos, "name %q has %d bytes: at most %d are possible", x.Text, len(x.Text), w.width/8-1)
	}
	b, err := w.typ.Parse(text)
	if err != nil {
		return fail(x.Pos, "%s", err)
	}
	v := parseValue(b, datatype.HostEndian)
	if wildcard {
		return &prefixTerm{w.info(x.Pos), v, uint32(8 * len(prefix))}
	}
	return &constTerm{w.info(x.Pos), v}
}

func (r *ruleCompiler) prefix(x *syntax.Prefix, w want) term {
	c := r.single(x.X, w)
	if w.isString() {
		return fail(x.Pos, "a prefix of %s is not possible", w.typ.Name)
	}
	if x.Len < 0 || uint32(x.Len) > w.width {
		return fail(x.Pos, "prefix length %d: want 0 to %d", x.Len, w.width)
	}
	n := uint32(x.Len)
	return &prefixTerm{w.info(x.Pos), c.v.and(prefixMask(w.width, n)), n}
}

func (r *ruleCompiler) flagList(x *syntax.List, w want) term {
	if !set.IsFlags(w.typ) {
		return fail(x.Pos, "a list is possible for flags only: write { %s } for a set of values", syntax.PrintExpr(x))
	}
	var v value
	for _, item := range x.Items {
		c := r.single(item, w)
		v = v.or(c.v)
	}
	return &constTerm{w.info(x.Pos), v}
}

func (r *ruleCompiler) constantBinary(x *syntax.Binary, w want) term {
	if w.isString() {
		return fail(x.Pos, "%s is not possible with type %s", x.Op, w.typ.Name)
	}
	a := r.single(x.X, w)
	if x.Op == "<<" || x.Op == ">>" {
		// nft 1.0.6 aborts on shifted constants.
		return fail(x.Pos, "shift of a constant: write its result")
	}
	b := r.single(x.Y, w)
	v := a.v
	switch x.Op {
	case "&":
		v = v.and(b.v)
	case "|":
		v = v.or(b.v)
	case "^":
		v = v.xor(b.v)
	default:
		return fail(x.Pos, "unknown operation %q", x.Op)
	}
	return &constTerm{w.info(x.Pos), v}
}

func cyclic(t term) bool {
	m, ok := t.(*keyTerm)
	return ok && !m.ct && (m.key.Key == selector.MetaTimeHour || m.key.Key == selector.MetaTimeDay)
}

// A reversed range, such as "22:00"-"06:00", becomes the complement of 06:00-22:00. Like in nft
// 1.0.6, this excludes both ends.
func (r *ruleCompiler) cycle(x *syntax.Range, w want) term {
	from := r.single(x.From, w)
	to := r.single(x.To, w)
	if from.v.cmp(to.v) > 0 {
		return outsideTerm{&rangeTerm{w.info(x.Pos), to.v, from.v}}
	}
	return &rangeTerm{w.info(x.Pos), from.v, to.v}
}

type outsideTerm struct{ *rangeTerm }

func inverse(op string) string {
	if op == "!=" {
		return "=="
	}
	return "!="
}
