package compile

import (
	google "github.com/google/nftables/expr"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/syntax"
)

type exprStmt struct{ expr.Expr }

func (s exprStmt) generate(g *generator) { g.emitOwn(s.Expr) }

type valueStmt struct {
	// nil if not given, with register 0
	first, second term
	expr          func(first, second uint32) expr.Expr
}

func (s *valueStmt) generate(g *generator) {
	first := g.loadOptional(s.first)
	g.emitOwn(s.expr(first, g.loadOptional(s.second)))
}

func (r *ruleCompiler) addValue(value term, e func(reg uint32) expr.Expr) {
	r.add(&valueStmt{first: value, expr: func(reg, _ uint32) expr.Expr { return e(reg) }})
}

func (r *ruleCompiler) addLibrary(e google.Any) { r.add(exprStmt{expr.Library{Any: e}}) }

func stateful[S syntax.Stmt](r *ruleCompiler, s S) {
	if _, ok := syntax.Stmt(s).(*syntax.ConnLimit); ok {
		r.requireConntrack(s)
	}
	r.add(exprStmt{must(expr.NewStateful(s))})
}

// The kernel has no conntrack in these families (nf_ct_netns_get).
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
