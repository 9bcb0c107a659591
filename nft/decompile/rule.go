package decompile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"

	google "github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/printable"
	"github.com/weft-proxy/weft/nft/selector"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/syntax"
)

// Scope looks up the sets of the rule's table.
type Scope interface {
	Set(name string) (*set.Set, bool)
	// Elements returns all elements of an anonymous set or map.
	Elements(s *set.Set) ([]set.Element, error)
}

// bounds the attempts to leave out a comparison
const maxImplied = 16

// Rule returns the rule without its comment. The error wraps errors.ErrUnsupported.
func Rule(family nft.Family, exprs []expr.Expr, scope Scope) (*syntax.Rule, error) {
	if _, err := nft.ParseFamily(family.String()); err != nil {
		return nil, fmt.Errorf("%w: %w", err, errors.ErrUnsupported)
	}
	d := &decompiler{family: family, scope: scope, elements: map[string][]set.Element{}}
	d.know(family)
	if err := catch(func() { d.run(d.reduce(exprs)) }); err != nil {
		return nil, err
	}
	if err := d.verify(d.out); err != nil {
		return nil, err
	}
	d.leaveOut()
	out := &syntax.Rule{Family: family, Stmts: d.out}
	if text := syntax.Print(out); text != printable.Escape(text) {
		return nil, fmt.Errorf("a text in it has characters that cannot be printed: %w", errors.ErrUnsupported)
	}
	return out, nil
}

// A removal may be possible only after another.
func (d *decompiler) leaveOut() {
	tries := 0
	for i := len(d.implied) - 1; i >= 0 && tries < maxImplied; i-- {
		last := d.implied[i]
		if !last.used || last.moved {
			continue
		}
		tries++
		without := slices.DeleteFunc(slices.Clone(d.out), func(s syntax.Stmt) bool { return s == last.match })
		if d.verify(without) == nil {
			d.out, d.implied = without, slices.Delete(d.implied, i, i+1)
			i = len(d.implied)
		}
	}
}

// Names that iptables-nft compares up to their NUL are compared as a whole; a lookup in an
// anonymous set with one element is a comparison.
func (d *decompiler) reduce(exprs []expr.Expr) (out []expr.Expr) {
	for i, e := range exprs {
		switch k := expr.Unwrap(e).(type) {
		case *google.Cmp:
			if i > 0 && isName(exprs[i-1]) && len(k.Data) < datatype.IfNameSize && bytes.HasSuffix(k.Data, []byte{0}) {
				whole := *k
				whole.Data = append(slices.Clone(k.Data), make([]byte, datatype.IfNameSize-len(k.Data))...)
				e = expr.Library{Any: &whole}
			}
		case *google.Lookup:
			if one, ok := d.single(k); ok {
				out = append(out, one...)
				continue
			}
		}
		out = append(out, e)
	}
	return out
}

func isName(e expr.Expr) bool {
	m, ok := expr.Unwrap(e).(*google.Meta)
	if !ok {
		return false
	}
	found := selector.MetaKeys.ByNumber(uint32(m.Key))
	return found != nil && found.Type == datatype.IfName
}

func (d *decompiler) single(l *google.Lookup) (out []expr.Expr, ok bool) {
	s, ok := d.scope.Set(l.SetName)
	if !ok || l.IsDestRegSet || s.Flags&(set.FlagAnonymous|set.FlagEval) != set.FlagAnonymous || len(s.Key.Names) != 1 || s.Key.Names[0] == datatype.IfName.Name {
		return nil, false
	}
	elements, err := d.scope.Elements(s)
	if err != nil || len(elements) != 1 || elements[0].Key == "" || elements[0].State != "" {
		return nil, false
	}
	from, to := []byte(elements[0].Key), []byte(elements[0].KeyEnd)
	compare := func(op google.CmpOp, data []byte) {
		out = append(out, expr.Library{Any: &google.Cmp{Op: op, Register: l.SourceRegister, Data: data}})
	}
	switch isRange := len(to) > 0 && !bytes.Equal(from, to); {
	case isRange && l.Invert:
		out = append(out, expr.Library{Any: &google.Range{Op: google.CmpOpNeq, Register: l.SourceRegister, FromData: from, ToData: to}})
	case isRange:
		compare(google.CmpOpGte, from)
		compare(google.CmpOpLte, to)
	case l.Invert:
		compare(google.CmpOpNeq, from)
	default:
		compare(google.CmpOpEq, from)
	}
	return out, true
}

// Comment returns the comment of iptables-nft, absent in the text.
func Comment(exprs []expr.Expr) string {
	for _, e := range exprs {
		if u, ok := e.(*expr.Unknown); ok {
			if name, _, info, ok := u.Extension(); ok && name == commentMatch {
				text, _, _ := bytes.Cut(info, []byte{0})
				return printable.Escape(string(text))
			}
		}
	}
	return ""
}

const commentMatch = "comment"

// a panic that never leaves catch
type failure struct{ err error }

func fail(name, format string, args ...any) {
	panic(failure{fmt.Errorf("%s: %s: %w", name, fmt.Sprintf(format, args...), errors.ErrUnsupported)})
}

func catch(f func()) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case failure:
			err = p.err
		default:
			panic(p)
		}
	}()
	f()
	return nil
}

// everything exists for the compiler
type known struct{ Scope }

func (k known) Set(name string) (*set.Set, bool) {
	s, ok := k.Scope.Set(name)
	return s, ok && s.Flags&set.FlagAnonymous == 0
}

func (known) Chain(string) bool                  { return true }
func (known) Object(nft.ObjectKind, string) bool { return true }
func (known) Flowtable(string) bool              { return true }

func (d *decompiler) verify(stmts []syntax.Stmt) error {
	native := slices.DeleteFunc(slices.Clone(stmts), func(s syntax.Stmt) bool { _, ok := s.(*syntax.XT); return ok })
	if len(native) == 0 && len(d.exprs) == 0 && len(stmts) > 0 {
		return nil // only iptables extensions
	}
	text := syntax.Print(&syntax.Rule{Stmts: native})
	differs := func(what string) error {
		return fmt.Errorf("compile again: %s differ: %s: %w", what, text, errors.ErrUnsupported)
	}
	compiled, err := compile.CompileRule(d.family, nft.Rule{Text: text}, known{d.scope})
	if err != nil {
		return fmt.Errorf("compile again: %s: %w: %w", text, err, errors.ErrUnsupported)
	}
	want, sets := d.canonical(d.exprs)
	got, anonymous := d.canonical(compiled.Exprs)
	a, err1 := expr.Encode(want)
	b, err2 := expr.Encode(got)
	if err := errors.Join(err1, err2); err != nil {
		return fmt.Errorf("encode again: %w: %w", err, errors.ErrUnsupported)
	}
	if !bytes.Equal(a.Bytes, b.Bytes) || len(sets) != len(anonymous) {
		return differs("expressions")
	}
	for i, ref := range sets {
		decl, _ := d.scope.Set(ref.name)
		if again := compiled.Anonymous[anonymous[i].id-1]; !d.sameSet(decl, again) {
			return differs("elements")
		}
	}
	return nil
}

// setFlags change the matches of a set.
const setFlags = set.FlagInterval | set.FlagMap | set.FlagObject | set.FlagEval | set.FlagTimeout

func (d *decompiler) sameSet(s *set.Set, again set.Anonymous) bool {
	if s.Key.Len != again.Set.Key.Len || s.Data.Len != again.Set.Data.Len || s.Flags&setFlags != again.Set.Flags&setFlags || s.Object != again.Set.Object {
		return false
	}
	byKey := func(a, b set.Element) int { return cmp.Compare(a.Key, b.Key) }
	return slices.Equal(slices.SortedFunc(slices.Values(d.elements[s.Name]), byKey), slices.SortedFunc(slices.Values(again.Elements), byKey))
}

// name of an anonymous set in the kernel, or its number in a compiled rule
type setRef struct {
	name string
	id   uint32
}

// canonical gives all anonymous sets one name and leaves out parts irrelevant to the meaning. sets
// is in order.
func (d *decompiler) canonical(exprs []expr.Expr) (out []expr.Expr, sets []setRef) {
	anonymous := func(name *string, id *uint32) {
		s, ok := d.scope.Set(*name)
		if *id == 0 && (!ok || s.Flags&set.FlagAnonymous == 0) {
			return
		}
		sets = append(sets, setRef{*name, *id})
		*name, *id = "", 0
	}
	for _, e := range exprs {
		if e = plain(e); e == nil {
			continue
		}
		switch x := expr.Unwrap(e).(type) {
		case *google.Lookup:
			lookup := *x
			anonymous(&lookup.SetName, &lookup.SetID)
			e = expr.Library{Any: &lookup}
		case *expr.Dynset:
			dynset := *x
			anonymous(&dynset.SetName, &dynset.SetID)
			e = &dynset
		case *expr.ObjrefMap:
			objref := *x
			anonymous(&objref.SetName, &objref.SetID)
			e = &objref
		}
		out = append(out, e)
	}
	return out, sets
}

// plain returns e without state and attributes added by the kernel's dump, or nil.
func plain(e expr.Expr) expr.Expr {
	switch x := expr.Unwrap(e).(type) {
	case *google.Counter:
		return expr.Library{Any: &google.Counter{}}
	case *google.Quota:
		return expr.Library{Any: &google.Quota{Bytes: x.Bytes, Over: x.Over}}
	case *expr.Log:
		l := *x
		if l.Level != nil && *l.Level == uint32(google.LogLevelWarning) {
			l.Level = nil
		}
		if l.Flags != nil && *l.Flags == 0 {
			l.Flags = nil
		}
		return &l
	case *google.Byteorder:
		if x.Len < x.Size {
			return nil // nft before version 1.1.2 swaps single bytes
		}
	case *expr.NAT:
		n := *x
		n.AddrMax, n.PortMax = end(n.AddrMin, n.AddrMax), end(n.PortMin, n.PortMax)
		n.Flags &^= unix.NF_NAT_RANGE_MAP_IPS | unix.NF_NAT_RANGE_PROTO_SPECIFIED // the kernel derives them from the registers
		return &n
	case *google.Redir:
		r := *x
		r.RegisterProtoMax = end(r.RegisterProtoMin, r.RegisterProtoMax)
		return expr.Library{Any: &r}
	case *expr.Masq:
		m := *x
		m.MaxPort = end(m.MinPort, m.MaxPort)
		return &m
	}
	return e
}

func end(from, to uint32) uint32 {
	if from == to {
		return 0
	}
	return to
}
