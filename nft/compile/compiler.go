package compile

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/weft-proxy/weft/nft/set"

	google "github.com/google/nftables/expr"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/syntax"
	"github.com/weft-proxy/weft/nft/userdata"
)

// CompileRule parses a rule and compiles it to what the kernel runs, which is
// what nft 1.0.6 makes of the same text. Errors of the text are an *syntax.Error.
func CompileRule(family nft.Family, rule nft.Rule, scope Scope) (*Rule, error) {
	parsed, err := syntax.ParseRule(family, rule.Text)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSyntax, err)
	}
	r := newRuleCompiler(family, scope)
	if err := r.compile(parsed, rule.Comment); err != nil {
		var e *syntax.Error
		if errors.As(err, &e) && e.Line == "" {
			e.Line = syntax.SourceLine(rule.Text, e.Pos.Line)
		}
		return nil, fmt.Errorf("compile rule: %w", err)
	}
	return r.out, nil
}

// statement is a statement of a rule after evaluation.
type statement interface {
	// generate appends the statement's expressions.
	generate(g *generator) error
}

// ruleCompiler compiles one rule.
type ruleCompiler struct {
	scope Scope
	ctx   context
	stmts []statement
	out   *Rule
}

func newRuleCompiler(family nft.Family, scope Scope) *ruleCompiler {
	return &ruleCompiler{scope: scope, ctx: newContext(family), out: &Rule{Family: family}}
}

// add appends a statement.
func (r *ruleCompiler) add(s statement) { r.stmts = append(r.stmts, s) }

// prepend adds an implicit dependency before the statement that is being
// evaluated, which is not in the list yet.
func (r *ruleCompiler) prepend(s statement) { r.stmts = append(r.stmts, s) }

// compile evaluates the statements and generates the expressions.
func (r *ruleCompiler) compile(parsed *syntax.Rule, comment string) error {
	switch {
	case parsed.Comment != "" && comment != "" && parsed.Comment != comment:
		return syntax.ErrorAt(syntax.Pos{Line: 1, Column: 1}, "the rule has two comments: %q in its text and %q beside it", parsed.Comment, comment)
	case comment == "":
		comment = parsed.Comment
	}
	if err := userdata.CheckComment(comment); err != nil {
		return syntax.ErrorAt(syntax.Pos{Line: 1, Column: 1}, "%s", err)
	}
	parsed.Comment = ""
	r.out.Text, r.out.Comment = syntax.Print(parsed), comment
	r.stmts = make([]statement, 0, 2*len(parsed.Stmts)+2)
	for i, s := range parsed.Stmts {
		if err := r.statement(s); err != nil {
			return err
		}
		if terminal(s) && i < len(parsed.Stmts)-1 {
			return syntax.ErrorAt(parsed.Stmts[i+1].Position(), "statement after a terminal statement has no effect")
		}
	}
	r.reduce()
	g := &generator{family: r.out.Family, out: make([]expr.Expr, 0, 2*len(r.stmts)+2)}
	for _, s := range r.stmts {
		if err := s.generate(g); err != nil {
			return err
		}
	}
	r.out.Exprs = g.out
	slices.Sort(r.out.Chains)
	slices.Sort(r.out.Sets)
	slices.Sort(r.out.Flowtables)
	sortObjects(r.out.Objects)
	if err := r.out.seal(); err != nil {
		return err
	}
	if slices.ContainsFunc(r.stmts, writes) {
		var err error
		if r.out.Writes, err = ParseWrites(r.out.encoded.Bytes); err != nil {
			return fmt.Errorf("find what the rule writes: %w", err)
		}
	}
	return nil
}

// writes reports whether a statement changes a named set.
func writes(s statement) bool {
	_, ok := s.(*dynamicStmt)
	return ok
}

// terminal reports whether nothing after a statement is run.
func terminal(s syntax.Stmt) bool {
	switch s := s.(type) {
	case *syntax.Verdict:
		return s.Kind != "continue"
	case *syntax.Reject, *syntax.NAT, *syntax.Queue, *syntax.Fwd:
		return true
	default:
		return false
	}
}

// statement evaluates one statement.
func (r *ruleCompiler) statement(s syntax.Stmt) error {
	switch s := s.(type) {
	case *syntax.Match:
		return r.match(s)
	case *syntax.Verdict:
		v, err := r.verdict(s)
		r.add(&verdictStmt{v})
		return err
	case *syntax.Vmap:
		return r.vmap(s)
	case *syntax.Counter, *syntax.Limit, *syntax.Quota:
		return r.stateful(s)
	case *syntax.ConnLimit:
		if err := r.requireConntrack(s); err != nil {
			return err
		}
		return r.stateful(s)
	case *syntax.Log:
		return r.log(s)
	case *syntax.Reject:
		return r.reject(s)
	case *syntax.NAT:
		return r.nat(s)
	case *syntax.Assign:
		return r.assign(s)
	case *syntax.ResetOption:
		return r.resetOption(s)
	case *syntax.Dynamic:
		return r.dynamic(s)
	case *syntax.Meter:
		return r.meter(s)
	case *syntax.Notrack:
		r.addLibrary(&google.Notrack{})
		return nil
	case *syntax.ObjectRef:
		return r.objectRef(s)
	case *syntax.Queue:
		return r.queue(s)
	case *syntax.Dup:
		return r.dup(s)
	case *syntax.Fwd:
		return r.fwd(s)
	case *syntax.TProxy:
		return r.tproxy(s)
	case *syntax.SynProxy:
		return r.synproxy(s)
	case *syntax.FlowAdd:
		return r.flowAdd(s)
	default:
		return syntax.ErrorAt(s.Position(), "statement %T is not supported", s)
	}
}

// seal computes the encoding and the fingerprint.
func (r *Rule) seal() error {
	var err error
	if r.encoded, err = expr.Encode(uint8(r.Family), r.Exprs); err != nil {
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

// orders of values that statements assign.
var (
	wantPort = want{typ: datatype.InetService, width: 16, order: datatype.BigEndian}
	wantIP   = want{typ: datatype.IPv4Addr, width: 32, order: datatype.BigEndian}
	wantIP6  = want{typ: datatype.IPv6Addr, width: 128, order: datatype.BigEndian}
)

// Scope is what a rule can refer to besides itself: the declarations of its
// table.
type Scope interface {
	// Set returns the named set or map.
	Set(name string) (*set.Set, bool)
	// Chain reports whether a chain of that name can be a target of jump and
	// goto. A scope that checks references elsewhere answers true.
	Chain(name string) bool
	// Object reports whether there is a named object that a rule can refer to. A
	// scope that checks references elsewhere answers true.
	Object(kind nft.ObjectKind, name string) bool
	// Flowtable is Object for flowtables.
	Flowtable(name string) bool
}

// Error is an error at a place of a rule's text: of its syntax or of its
// meaning. [syntax.Error.Excerpt] draws the caret.
type Error = syntax.Error

// ErrSyntax is wrapped by CompileRule's error about a text that does not parse.
// Its other errors are about what the text means.
var ErrSyntax = errors.New("parse rule")
