package compile

import (
	"slices"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/syntax"
)

func (r *ruleCompiler) objectRef(s *syntax.ObjectRef) {
	switch ref := s.Ref.(type) {
	case *syntax.Const:
		r.object(ref, s.Kind)
		r.add(exprStmt{&expr.Objref{Type: object.Number(s.Kind), Name: ref.Text}})
	case *syntax.Map:
		r.objectMap(s.Kind, ref)
	default:
		fail(ref.Position(), "%s is not the name of a %s", describe(ref), s.Kind)
	}
}

func (r *ruleCompiler) object(name *syntax.Const, kind nft.ObjectKind) {
	checkName(name.Pos, string(kind), name.Text)
	if r.scope == nil || !r.scope.Object(kind, name.Text) {
		fail(name.Pos, "%s %q is not declared in this table", kind, name.Text)
	}
	note(&r.out.Objects, object.Ref{Kind: kind, Name: name.Text})
}

func checkName(pos syntax.Pos, what, name string) {
	if err := datatype.CheckName(name); err != nil {
		fail(pos, "%s: %s", what, err)
	}
}

func note[T comparable](list *[]T, x T) {
	if !slices.Contains(*list, x) {
		*list = append(*list, x)
	}
}

// The values are names of objects.
func (r *ruleCompiler) objectMap(kind nft.ObjectKind, x *syntax.Map) {
	spec := r.mapSpec(x.Key)
	spec.object = kind
	table := r.mapTable(x.Table, &spec, func(e *syntax.Elem, out *set.Element) {
		name, ok := e.Value.(*syntax.Const)
		if !ok {
			fail(e.Pos, "element has no %s: write KEY : NAME", kind)
		}
		r.object(name, kind)
		out.Data = name.Text
	})
	r.addValue(spec.key, func(reg uint32) expr.Expr {
		return &expr.ObjrefMap{Register: reg, SetName: table.set.Name, SetID: table.id}
	})
}

func (r *ruleCompiler) flowAdd(s *syntax.FlowAdd) {
	checkName(s.NamePos, "flowtable", s.Flowtable)
	if r.scope == nil || !r.scope.Flowtable(s.Flowtable) {
		fail(s.NamePos, "flowtable @%s is not declared in this table", s.Flowtable)
	}
	note(&r.out.Flowtables, s.Flowtable)
	r.add(exprStmt{&expr.FlowOffload{Flowtable: s.Flowtable}})
}
