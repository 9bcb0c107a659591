package compile

import (
	google "github.com/google/nftables/expr"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/syntax"
)

// exprStmt is a statement that is one expression and needs no register.
type exprStmt struct{ expr.Expr }

// generate is statement's.
func (s exprStmt) generate(g *generator) error {
	g.emitOwn(s.Expr)
	return nil
}

// addLibrary adds a statement that is one expression of google/nftables.
func (r *ruleCompiler) addLibrary(e google.Any) { r.add(exprStmt{expr.Library{Any: e}}) }

// stateful evaluates a statement that keeps a state.
func (r *ruleCompiler) stateful(s syntax.Stmt) error {
	e, err := expr.NewStateful(s)
	if err != nil {
		return err
	}
	r.add(exprStmt{e})
	return nil
}

// requireConntrack rejects the families for which the kernel has no connection
// tracking (nf_ct_netns_get).
func (r *ruleCompiler) requireConntrack(s syntax.Stmt) error {
	if r.ctx.family == nft.FamilyARP || r.ctx.family == nft.FamilyNetdev {
		return syntax.ErrorAt(s.Position(), "a statement on connections is not possible in tables of family %s", r.ctx.family)
	}
	return nil
}
