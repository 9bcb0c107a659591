package compile

import (
	google "github.com/google/nftables/expr"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/syntax"
)

// exprStmt is a statement of one expression without registers.
type exprStmt struct{ expr.Expr }

func (s exprStmt) generate(g *generator) { g.emitOwn(s.Expr) }

// valueStmt is a statement whose expression reads up to two registers.
type valueStmt struct {
	// An operand is nil if it was not given. Its register is then 0.
	first, second term
	expr          func(first, second uint32) expr.Expr
}

func (s *valueStmt) generate(g *generator) {
	first := g.loadOptional(s.first)
	g.emitOwn(s.expr(first, g.loadOptional(s.second)))
}

// addValue adds a statement whose expression reads one register.
func (r *ruleCompiler) addValue(value term, e func(reg uint32) expr.Expr) {
	r.add(&valueStmt{first: value, expr: func(reg, _ uint32) expr.Expr { return e(reg) }})
}

// addLibrary adds an expression of google/nftables.
func (r *ruleCompiler) addLibrary(e google.Any) { r.add(exprStmt{expr.Library{Any: e}}) }

// stateful evaluates a statement with state.
func (r *ruleCompiler) stateful(s syntax.Stmt) {
	r.add(exprStmt{must(expr.NewStateful(s))})
}

// requireConntrack rejects the families without connection tracking in the kernel
// (nf_ct_netns_get).
func (r *ruleCompiler) requireConntrack(s syntax.Stmt) {
	if r.ctx.family == nft.FamilyARP || r.ctx.family == nft.FamilyNetdev {
		fail(s.Position(), "a statement on connections is not possible in tables of family %s", r.ctx.family)
	}
}

func (r *ruleCompiler) synproxy(s *syntax.SynProxy) {
	r.requireConntrack(s)
	e := &google.SynProxy{SackPerm: s.SackPerm, Timestamp: s.Timestamp}
	if s.MSS != nil {
		e.Mss, e.MssValueSet = *s.MSS, true
	}
	if s.WScale != nil {
		e.Wscale, e.WscaleValueSet = *s.WScale, true
	}
	r.addLibrary(e)
}
