package compile

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/syntax"
	"github.com/weft-proxy/weft/nft/userdata"
)

// CompileRule parses a rule and compiles it to the expressions of nft 1.0.6.
//
// It rejects statements after a terminal one, comments that nft cannot store, and a comment in the
// text different from rule.Comment. An error in the text wraps *syntax.Error, and ErrSyntax if
// parsing fails.
func CompileRule(family nft.Family, rule nft.Rule, scope Scope) (*Rule, error) {
	parsed, err := syntax.ParseRule(family, rule.Text)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSyntax, err)
	}
	r := &ruleCompiler{scope: scope, ctx: newContext(family), out: &Rule{Family: family}}
	if err := catch(func() { r.compile(parsed, rule.Comment) }); err != nil {
		var e *syntax.Error
		if errors.As(err, &e) && e.Line == "" {
			e.Line = syntax.SourceLine(rule.Text, e.Pos.Line)
		}
		return nil, fmt.Errorf("compile rule: %w", err)
	}
	return r.out, nil
}

// failure is the panic for the first error, and never leaves catch.
type failure struct{ err error }

// The result allows "return fail(...)".
func fail(pos syntax.Pos, format string, args ...any) term {
	panic(failure{syntax.ErrorAt(pos, format, args...)})
}

type anError interface {
	comparable
	error
}

func check[E anError](err E) {
	var none E
	if err != none {
		panic(failure{err})
	}
}

func checkAt(pos syntax.Pos, err error) {
	if err != nil {
		fail(pos, "%s", err)
	}
}

func must[T any, E anError](x T, err E) T {
	check(err)
	return x
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

type statement interface {
	generate(g *generator)
}

type ruleCompiler struct {
	scope Scope
	ctx   context
	stmts []statement
	out   *Rule
}

// add appends a statement; its dependencies come before it.
func (r *ruleCompiler) add(s statement) { r.stmts = append(r.stmts, s) }

// first moves the statements of f to the head of the rule.
func (r *ruleCompiler) first(f func()) {
	n := len(r.stmts)
	f()
	r.stmts = slices.Concat(r.stmts[n:], r.stmts[:n])
}

func (r *ruleCompiler) compile(parsed *syntax.Rule, comment string) {
	switch {
	case parsed.Comment != "" && comment != "" && parsed.Comment != comment:
		fail(syntax.Pos{Line: 1, Column: 1}, "the rule has two comments: %q in its text and %q beside it", parsed.Comment, comment)
	case comment == "":
		comment = parsed.Comment
	}
	checkAt(syntax.Pos{Line: 1, Column: 1}, userdata.CheckComment(comment))
	parsed.Comment = ""
	r.out.Text, r.out.Comment = syntax.Print(parsed), comment
	r.stmts = make([]statement, 0, 2*len(parsed.Stmts)+2)
	for i, s := range parsed.Stmts {
		k, ok := kinds[reflect.TypeOf(s)]
		if !ok {
			fail(s.Position(), "statement %T is not supported", s)
		}
		k.compile(r, s)
		r.out.Effects.Classes |= r.classes(s)
		if k.ends(s) && i < len(parsed.Stmts)-1 {
			fail(parsed.Stmts[i+1].Position(), "statement after a terminal statement has no effect")
		}
	}
	r.reduce()
	g := &generator{family: r.out.Family, out: make([]expr.Expr, 0, 2*len(r.stmts)+2)}
	for _, s := range r.stmts {
		s.generate(g)
		g.regs.used = 0
	}
	r.out.Exprs = g.out
	r.out.Effects.Mark = changedMark(g.out)
	r.out.Effects.LogRate = logRate(g.out)
	slices.Sort(r.out.Chains)
	slices.Sort(r.out.Sets)
	slices.Sort(r.out.Flowtables)
	slices.SortFunc(r.out.Objects, func(a, b object.Ref) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	check(r.out.seal())
	if slices.ContainsFunc(r.stmts, func(s statement) bool { _, ok := s.(*dynamicStmt); return ok }) {
		r.out.Writes = writesOf(r.out.Exprs)
	}
}

func (r *Rule) seal() error {
	var err error
	if r.encoded, err = expr.Encode(r.Exprs); err != nil {
		return err
	}
	b := r.encoded.Bytes
	text := make([]byte, 0, len(b)+256)
	put := func(v uint32) { text = binary.BigEndian.AppendUint32(text, v) }
	str := func(s string) {
		put(uint32(len(s)))
		text = append(text, s...)
	}
	put(uint32(r.Family))
	put(uint32(len(b)))
	text = append(text, b...)
	str(r.Comment)
	for i := range r.Anonymous {
		a := &r.Anonymous[i]
		for _, v := range []uint32{a.Set.Flags, a.Set.Key.ID, a.Set.Key.Len, a.Set.Data.ID, a.Set.Data.Len, a.Set.Size} {
			put(v)
		}
		str(string(a.Set.UserData))
		if a.Set.Object != "" {
			str(string(a.Set.Object))
		}
		put(uint32(len(a.Elements)))
		for _, e := range a.Elements {
			str(e.Key)
			str(e.KeyEnd)
			str(e.Data)
			str(e.Comment)
			if e.State != "" {
				str(e.State)
			}
		}
	}
	sum := sha256.Sum256(text)
	copy(r.Fingerprint[:], sum[:])
	return nil
}

var (
	wantPort = want{typ: datatype.InetService, width: 16, order: datatype.BigEndian}
	wantIP   = want{typ: datatype.IPv4Addr, width: 32, order: datatype.BigEndian}
	wantIP6  = want{typ: datatype.IPv6Addr, width: 128, order: datatype.BigEndian}
)

// Scope looks up the declarations of a rule's table. A nil Scope has all chains, but no sets, objects
// and flowtables.
type Scope interface {
	// A rule with a missing set is rejected.
	Set(name string) (*set.Set, bool)
	// A scope that checks references elsewhere returns true.
	Chain(name string) bool
	// Object may always return true, like Chain.
	Object(kind nft.ObjectKind, name string) bool
	// Flowtable may always return true, like Chain.
	Flowtable(name string) bool
}

// ErrSyntax is wrapped by errors of CompileRule if parsing fails.
var ErrSyntax = errors.New("parse rule")
