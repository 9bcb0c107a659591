package compile

import (
	"cmp"
	"slices"

	google "github.com/google/nftables/expr"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/syntax"
)

// objectMapStmt uses the object that a map gives for a key.
type objectMapStmt struct {
	key   term
	table *setTerm
}

// objectRef evaluates the use of a named object.
func (r *ruleCompiler) objectRef(s *syntax.ObjectRef) {
	switch ref := s.Ref.(type) {
	case *syntax.Const:
		r.object(ref, s.Kind)
		r.addLibrary(&google.Objref{Type: int(object.Number(s.Kind)), Name: ref.Text})
		return
	case *syntax.Map:
		r.objectMap(s.Kind, ref)
		return
	default:
		fail(ref.Position(), "%s is not the name of a %s", describe(ref), s.Kind)
	}
}

// object checks that there is an object, and notes that the rule uses it.
func (r *ruleCompiler) object(name *syntax.Const, kind nft.ObjectKind) {
	if err := datatype.CheckName(name.Text); err != nil {
		fail(name.Pos, "%s: %s", kind, err)
	}
	if r.scope == nil || !r.scope.Object(kind, name.Text) {
		fail(name.Pos, "%s %q is not declared in this table", kind, name.Text)
	}
	if ref := (object.Ref{Kind: kind, Name: name.Text}); !slices.Contains(r.out.Objects, ref) {
		r.out.Objects = append(r.out.Objects, ref)
	}
}

// sortObjects orders the objects that a rule refers to.
func sortObjects(refs []object.Ref) {
	slices.SortFunc(refs, func(a, b object.Ref) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
}

// objectMap evaluates "KEY map TABLE", whose values are names of objects.
func (r *ruleCompiler) objectMap(kind nft.ObjectKind, x *syntax.Map) {
	key := r.mapKey(x.Key)
	out := &objectMapStmt{key: key}
	switch table := x.Table.(type) {
	case *syntax.SetRef:
		out.table = r.setRef(table, key)
		switch s := out.table.set; {
		case s.Object == "":
			fail(table.Pos, "@%s is not a map of objects", table.Name)
		case s.Object != kind:
			fail(table.Pos, "@%s is a map of kind %s: want %s", table.Name, s.Object, kind)
		case s.Flags&set.FlagInterval != 0:
			out.key = toBig(key)
		}
	case *syntax.Set:
		spec := &anonymousSpec{key: key, syntaxKey: x.Key, pos: table.Pos, isMap: true, object: kind}
		out.table = r.anonymousObjectMap(table, spec)
		out.key = spec.key
	default:
		fail(x.Pos, "a map needs { ... } or @name")
	}
	r.add(out)
}

// anonymousObjectMap makes an anonymous map of objects.
func (r *ruleCompiler) anonymousObjectMap(table *syntax.Set, spec *anonymousSpec) *setTerm {
	keys := r.elementKeys(spec, table)
	for i, e := range table.Elems {
		name, ok := e.Value.(*syntax.Const)
		if !ok {
			fail(e.Pos, "element has no %s: write KEY : NAME", spec.object)
		}
		r.object(name, spec.object)
		keys[i].elem.Comment = e.Comment
		keys[i].elem.Data = name.Text
	}
	r.transferSet(spec, keys)
	elems := spec.pack(keys)
	return r.newAnonymous(spec, elems)
}

// generate is statement's.
func (s *objectMapStmt) generate(g *generator) {
	reg := g.loadNew(s.key)
	g.emitOwn(&expr.ObjrefMap{Register: reg.number(), SetName: s.table.set.Name, SetID: s.table.id})
}

// flowAdd evaluates "flow add @f".
func (r *ruleCompiler) flowAdd(s *syntax.FlowAdd) {
	if err := datatype.CheckName(s.Flowtable); err != nil {
		fail(s.NamePos, "flowtable: %s", err)
	}
	if r.scope == nil || !r.scope.Flowtable(s.Flowtable) {
		fail(s.NamePos, "flowtable @%s is not declared in this table", s.Flowtable)
	}
	if !slices.Contains(r.out.Flowtables, s.Flowtable) {
		r.out.Flowtables = append(r.out.Flowtables, s.Flowtable)
	}
	r.add(exprStmt{&expr.FlowOffload{Flowtable: s.Flowtable}})
}
