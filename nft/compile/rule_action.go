package compile

import (
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

// action evaluates the statements that keep a state, use an object or send the
// packet elsewhere.
func (r *ruleCompiler) action(s syntax.Stmt) error {
	switch s.(type) {
	case *syntax.ConnLimit, *syntax.SynProxy:
		// The kernel has no connection tracking for them (nf_ct_netns_get).
		if r.ctx.family == nft.FamilyARP || r.ctx.family == nft.FamilyNetdev {
			return syntax.ErrorAt(s.Position(), "a statement on connections is not possible in tables of family %s", r.ctx.family)
		}
	}
	switch s := s.(type) {
	case *syntax.Quota:
		q, err := expr.NewQuota(s)
		r.add(exprStmt{q})
		return err
	case *syntax.ConnLimit:
		r.add(exprStmt{expr.NewConnLimit(s)})
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
		r.add(exprStmt{newSynProxy(s)})
		return nil
	case *syntax.FlowAdd:
		return r.flowAdd(s)
	default:
		return syntax.ErrorAt(s.Position(), "statement %T is not supported", s)
	}
}
