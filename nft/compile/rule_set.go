package compile

import (
	"cmp"
	"slices"
	"strings"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/syntax"
	"github.com/weft-proxy/weft/nft/userdata"
)

func (r *ruleCompiler) setRef(x *syntax.SetRef, key term) *setTerm {
	table := r.named(x)
	parts, err := table.Key.Resolve()
	if err != nil {
		fail(x.Pos, "set @%s: %s", x.Name, err)
	}
	if !slices.EqualFunc(partsOf(key), parts, func(t term, p set.Part) bool { return t.info().typ == p.Type }) {
		fail(x.Pos, "datatype mismatch: the keys of @%s are %s, %s is looked up", x.Name, strings.Join(table.Key.Names, " . "), typeName(key))
	}
	return &setTerm{termInfo: termInfo{pos: x.Pos}, set: table}
}

func (r *ruleCompiler) named(x *syntax.SetRef) *set.Set {
	if r.scope == nil {
		fail(x.Pos, "set @%s is not declared", x.Name)
	}
	set, ok := r.scope.Set(x.Name)
	if !ok || set == nil {
		fail(x.Pos, "set or map @%s is not declared in this table", x.Name)
	}
	note(&r.out.Sets, x.Name)
	return set
}

func (r *ruleCompiler) anonymousMatch(m *syntax.Match, x *syntax.Set, left term) (right, newLeft term) {
	if m.Op != "" && m.Op != "==" && m.Op != "!=" {
		fail(m.OpPos, "operator %s is not possible with a set: want ==, != or none", m.Op)
	}
	spec := &anonymousSpec{key: left, syntaxKey: m.Left}
	right = r.anonymous(spec, x, func(e *syntax.Elem, out *set.Element) {
		if e.Value != nil {
			fail(e.Value.Position(), "a set's element has no value: use map or vmap")
		}
		out.State = set.NewState(0, must(expr.StatefulWords(e.Stmts)))
	})
	return right, spec.key
}

// data sets the data or the state of an element.
func (r *ruleCompiler) anonymous(spec *anonymousSpec, x *syntax.Set, data func(*syntax.Elem, *set.Element)) *setTerm {
	spec.pos = x.Pos
	keys := r.elementKeys(spec, x)
	spec.checkMasked()
	for i, e := range x.Elems {
		data(e, &keys[i].elem)
		keys[i].elem.Comment = e.Comment
	}
	values := spec.singleValues(keys)
	out := r.newAnonymous(spec, spec.pack(r.transferSet(spec, keys)))
	out.values = values
	return out
}

type anonymousSpec struct {
	// changes if the set needs another byte order
	key       term
	syntaxKey syntax.Expr
	pos       syntax.Pos
	// interval: has a range, or a prefix such as "eth*"; swapped: a single key became big-endian for
	// the intervals
	interval, swapped bool
	isMap, verdict    bool
	data              []set.Part
	object            nft.ObjectKind
	dataInterval      bool
}

// key is nil for the catch-all element
type elemKey struct {
	key  term
	elem set.Element
}

func (r *ruleCompiler) elementKeys(spec *anonymousSpec, x *syntax.Set) []elemKey {
	w := wantLike(spec.key)
	if spec.isMap {
		// nft checks the range of a generator in sets, not in maps.
		w.limited = false
	}
	keys := make([]elemKey, len(x.Elems))
	for i, e := range x.Elems {
		if e.Timeout != 0 || e.Expires != 0 {
			fail(e.Pos, "an element of an anonymous set cannot have a timeout: declare a named set")
		}
		checkAt(e.Pos, userdata.CheckComment(e.Comment))
		if _, ok := e.Key.(*syntax.Wildcard); ok {
			continue
		}
		t := r.constant(e.Key, w)
		if !isSingle(t) {
			spec.interval = true
		}
		keys[i].key = t
	}
	if spec.interval {
		host := spec.key.info().order == datatype.HostEndian
		spec.key = toBig(spec.key)
		_, spec.swapped = spec.key.(*swapTerm)
		// A single byte changes its order without a conversion; a map's key type keeps the old
		// order.
		spec.swapped = spec.swapped || host && spec.isMap
	}
	return keys
}

// transferSet moves the key's operation to the elements' keys, and merges intervals first.
func (r *ruleCompiler) transferSet(spec *anonymousSpec, keys []elemKey) []elemKey {
	b, ok := spec.key.(*binaryTerm)
	if !ok || b.op != ">>" && b.op != "^" || shifted(b) {
		return keys
	}
	for i := range keys {
		switch keys[i].key.(type) {
		case *constTerm, *rangeTerm:
		default:
			return keys
		}
	}
	if spec.interval && !spec.isMap {
		keys = mergeKeys(keys)
	}
	for i := range keys {
		b.moveTo(keys[i].key)
	}
	info := *b.x.info()
	info.width = info.bits
	*b.x.info() = info
	spec.key = b.x
	return keys
}

func mergeKeys(keys []elemKey) []elemKey {
	slices.SortStableFunc(keys, func(a, b elemKey) int {
		x, _ := bounds(a.key)
		y, _ := bounds(b.key)
		return x.cmp(y)
	})
	out := keys[:1]
	for _, k := range keys[1:] {
		from, to := bounds(k.key)
		first, last := bounds(out[len(out)-1].key)
		if last.cmp(from) < 0 && last.next() != from {
			out = append(out, k)
			continue
		}
		if to.cmp(last) > 0 {
			out[len(out)-1].key = &rangeTerm{*k.key.info(), first, to}
		}
	}
	return out
}

func (spec *anonymousSpec) parts() []set.Part {
	terms := partsOf(spec.key)
	parts := make([]set.Part, len(terms))
	for i, t := range terms {
		parts[i] = partOfTerm(t)
	}
	return parts
}

func (spec *anonymousSpec) pack(keys []elemKey) []set.Element {
	parts := spec.parts()
	if spec.interval {
		for i := range parts {
			if !parts[i].Text() {
				parts[i].Order = datatype.BigEndian
			}
		}
	}
	elems := make([]set.Element, len(keys))
	for i, k := range keys {
		elems[i] = k.elem
		if k.key == nil {
			continue
		}
		var low, high [set.MaxKey]byte
		lo, hi := appendBounds(low[:0], high[:0], k.key, parts)
		elems[i].Key = string(lo)
		if spec.interval {
			if len(parts) == 1 && !parts[0].Text() {
				set.OpenEnd(hi, parts[0].Bits)
			}
			elems[i].KeyEnd = string(hi)
		}
	}
	return elems
}

func appendBounds(lo, hi []byte, t term, parts []set.Part) (low, high []byte) {
	terms := partsOf(t)
	for i, t := range terms {
		from, to := bounds(t)
		p := parts[i]
		lo = appendValue(lo, from, uint32(p.Size), p.Order)
		hi = appendValue(hi, to, uint32(p.Size), p.Order)
		if len(terms) > 1 {
			lo, hi = set.AppendPadding(lo, p), set.AppendPadding(hi, p)
		}
	}
	return lo, hi
}

func bounds(t term) (from, to value) {
	switch t := t.(type) {
	case *constTerm:
		return t.v, t.v
	case *rangeTerm:
		return t.from, t.to
	case *prefixTerm:
		rest := valueMask(t.width).xor(prefixMask(t.width, t.len))
		if t.isString() && set.LittleHost {
			// Text is packed from its first byte on, the low one.
			rest = valueMask(t.width).xor(valueMask(t.len))
		}
		return t.v, t.v.or(rest)
	default:
		return value{}, value{}
	}
}

func (r *ruleCompiler) newAnonymous(spec *anonymousSpec, elems []set.Element) *setTerm {
	spec.unlistable(elems)
	parts := spec.parts()
	s := &set.Set{Name: "__set%d", Map: spec.isMap, Verdict: spec.verdict, Object: spec.object, DataInterval: spec.dataInterval, Flags: set.FlagAnonymous | set.FlagConstant}
	var err error
	s.Key, err = set.NewType(parts)
	checkAt(spec.key.info().pos, err)
	switch {
	case spec.object != "":
		s.Name = "__objmap%d"
		s.Flags |= set.FlagObject
	case spec.isMap:
		s.Name = "__map%d"
		s.Flags |= set.FlagMap
		s.Data, err = spec.dataType()
		checkAt(spec.pos, err)
	}
	if spec.interval {
		s.Flags |= set.FlagInterval
		if len(parts) > 1 {
			s.Flags |= set.FlagConcat
		}
		s.AutoMerge = !spec.isMap
	}
	elems, err = finishElements(s, elems)
	checkAt(spec.pos, err)
	spec.userData(s)
	r.out.Anonymous = append(r.out.Anonymous, set.Anonymous{Set: s, Elements: elems})
	return &setTerm{termInfo: termInfo{pos: spec.pos}, set: s, id: uint32(len(r.out.Anonymous))}
}

func (spec *anonymousSpec) dataType() (set.Type, error) {
	if spec.verdict {
		return set.Type{ID: set.VerdictType, Names: []string{datatype.Verdict.Name}}, nil
	}
	t, err := set.NewType(spec.data)
	if err == nil && spec.dataInterval {
		t.Len *= 2
	}
	return t, err
}

// userData stores, like nft 1.0.6, the key's expressions up to the first that nft cannot store. A
// map's single key and its data have none.
func (spec *anonymousSpec) userData(s *set.Set) {
	parts := spec.parts()
	key, data := set.TypeOf{Order: set.OrderOf(parts)}, set.TypeOf{Order: spec.dataOrder()}
	if spec.swapped {
		key.Order = datatype.HostEndian
	}
	// nft has no expression for the key of an object map.
	if !spec.isMap || len(parts) > 1 && spec.object == "" {
		key.Exprs, key.Parts = spec.typeOf(), len(parts)
	}
	if spec.verdict {
		data = set.VerdictTypeOf
	}
	s.SetUserData(key, data)
}

func (spec *anonymousSpec) typeOf() []set.TypeOfExpr {
	list, terms := []syntax.Expr{spec.syntaxKey}, []term{spec.key}
	if c, ok := spec.syntaxKey.(*syntax.Concat); ok {
		list = c.Parts
		terms = spec.key.(*concatTerm).parts
	}
	var exprs []set.TypeOfExpr
	for i, x := range list {
		t := terms[i]
		if len(list) > 1 {
			if i == maxStoredParts {
				return exprs
			}
			x, t = withoutMask(x, t)
		}
		if s, ok := t.(*swapTerm); ok && (spec.isMap || len(list) == 1) {
			t = s.x
		}
		switch t.(type) {
		case *payloadTerm, *exthdrTerm, *keyTerm, *fibTerm, *hostTerm, *numberTerm:
		default:
			return exprs
		}
		_, e, err := set.TypeOfSelector(x)
		if err != nil {
			return exprs
		}
		exprs = append(exprs, e)
	}
	return exprs
}

// the most expressions that nft stores for a concatenation
const maxStoredParts = 4

func withoutMask(x syntax.Expr, t term) (syntax.Expr, term) {
	for {
		b, ok := t.(*binaryTerm)
		if !ok || b.op == "<<" || b.op == ">>" {
			return x, t
		}
		t = b.x
		if s, ok := x.(*syntax.Binary); ok {
			x = s.X
		}
	}
}

// finishElements orders the elements like nft, merges intervals and sets the size.
func finishElements(s *set.Set, elems []set.Element) ([]set.Element, error) {
	if s.Flags&set.FlagInterval == 0 || s.Flags&set.FlagConcat != 0 {
		s.Size = uint32(len(elems))
		return elems, checkRepeats(s, elems)
	}
	var rest []set.Element
	elems = slices.DeleteFunc(elems, func(e set.Element) bool {
		if e.Key == "" {
			rest = append(rest, e)
		}
		return e.Key == ""
	})
	if err := checkRepeats(s, rest); err != nil {
		return nil, err
	}
	elems, err := s.Normalize(elems)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(elems, func(a, b set.Element) int { return cmp.Compare(a.Key, b.Key) })
	// Each interval has a begin and an end. nft adds an end at 0 before the first interval.
	s.Size = uint32(2*len(elems) + len(rest))
	if strings.Trim(elems[0].Key, "\x00") != "" {
		s.Size++
	}
	return append(elems, rest...), nil
}

func checkRepeats(s *set.Set, elems []set.Element) error {
	if !s.Map || len(elems) < 2 {
		return nil
	}
	seen := make(map[string]string, len(elems))
	for _, e := range elems {
		key := e.Key + e.KeyEnd
		if data, ok := seen[key]; ok && data != e.Data {
			return s.Conflict(set.Element{Key: e.Key, KeyEnd: e.KeyEnd, Data: data}, e, "has two values")
		}
		seen[key] = e.Data
	}
	return nil
}
