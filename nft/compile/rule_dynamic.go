package compile

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/syntax"
)

type dynamicStmt struct {
	op      uint32
	set     *set.Set
	key     term
	data    term
	timeout time.Duration
	exprs   []expr.Expr
	// number of a meter's set, 0 for named sets
	id uint32
}

var dynsetOps = map[string]uint32{"add": unix.NFT_DYNSET_OP_ADD, "update": unix.NFT_DYNSET_OP_UPDATE, "delete": expr.DynsetDelete}

func (r *ruleCompiler) dynamic(s *syntax.Dynamic) {
	declared := r.named(s.Set)
	out := &dynamicStmt{set: declared, timeout: s.Elem.Timeout, op: dynsetOps[s.Op]}
	e := s.Elem
	switch {
	case declared.Flags&set.FlagInterval != 0:
		fail(s.Set.Pos, "@%s has the flag interval: the kernel cannot change it from a rule", declared.Name)
	case declared.Flags&set.FlagConstant != 0:
		fail(s.Set.Pos, "@%s has the flag constant: a rule cannot change it", declared.Name)
	case declared.Flags&(set.FlagEval|set.FlagTimeout) == 0 && (declared.Size != 0 || declared.Key.Len <= 2):
		// The kernel chooses a fixed table or a bitmap then. nft sets the flag by itself.
		fail(s.Set.Pos, "the kernel cannot change @%s from a rule: declare it with flags dynamic", declared.Name)
	case e.Comment != "":
		fail(e.Pos, "an element that a rule adds cannot have a comment")
	case e.Timeout != 0 && declared.Flags&set.FlagTimeout == 0:
		fail(e.Pos, "@%s has no flag timeout: its elements cannot have one", declared.Name)
	case declared.Object != "":
		fail(s.Set.Pos, "@%s is a map of objects: a rule cannot change it", declared.Name)
	case declared.Map && declared.Verdict:
		fail(s.Set.Pos, "@%s is a verdict map: a rule cannot change it", declared.Name)
	case declared.Map && e.Value == nil && s.Op != "delete":
		fail(e.Pos, "@%s is a map: write { KEY : DATA }", declared.Name)
	case !declared.Map && e.Value != nil:
		fail(e.Value.Position(), "@%s is a set: its elements have no data", declared.Name)
	}
	out.key = r.dynamicPart(e.Key, &declared.Key)
	if e.Value != nil {
		if containsMap(e.Value) {
			fail(e.Value.Position(), "the result of a map as data of a dynamic update makes nft(8) 1.0.6 abort when it lists the rule: use constants or header fields")
		}
		out.data = r.dynamicPart(e.Value, &declared.Data)
	}
	out.exprs = dynamicExprs(declared, e.Stmts)
	r.add(out)
}

func dynamicExprs(declared *set.Set, stmts []syntax.Stmt) []expr.Expr {
	if len(stmts) == 0 {
		return nil
	}
	if err := declared.CheckStatements(must(expr.StatefulWords(stmts))); err != nil {
		fail(stmts[0].Position(), "@%s: %s", declared.Name, err)
	}
	out := make([]expr.Expr, len(stmts))
	for i, s := range stmts {
		out[i] = must(expr.NewStateful(s))
	}
	return out
}

func (r *ruleCompiler) dynamicPart(x syntax.Expr, typ *set.Type) term {
	w, err := wantOf(typ)
	if err != nil {
		return fail(x.Position(), "%s", err)
	}
	if containsMap(x) {
		return fail(x.Position(), "a map is not possible as the key of a dynamic statement")
	}
	t := r.eval(x, w)
	if !w.matches(t) {
		fail(x.Position(), "datatype mismatch: want %s, %s is %s", w.name(), describe(x), typeName(t))
	}
	checkOne(x, t)
	return t
}

func containsMap(x syntax.Expr) bool {
	found := false
	walk(x, func(x syntax.Expr) {
		_, isMap := x.(*syntax.Map)
		found = found || isMap
	})
	return found
}

// keyRegister takes whole 128-bit registers for a map's key, so its data does not overwrite a long
// concatenation. nft uses one 128-bit register each for key and data.
func (s *dynamicStmt) keyRegister(g *generator) register {
	if s.data == nil {
		return g.regs.takeFor(s.key)
	}
	i := s.key.info()
	return g.regs.take((max(i.slots(), 1)+3)&^3, i.pos)
}

func (s *dynamicStmt) generate(g *generator) {
	key := s.keyRegister(g)
	g.load(s.key, key)
	out := &expr.Dynset{Op: s.op, Key: key.number(), SetName: s.set.Name, SetID: s.id, Timeout: s.timeout, Exprs: s.exprs}
	if s.data != nil {
		data := g.regs.takeFor(s.data)
		g.load(s.data, data)
		out.Data = data.number()
	}
	g.emitOwn(out)
}

// A meter is an update of the rule's own set, which has a name but is otherwise anonymous.
func (r *ruleCompiler) meter(s *syntax.Meter) {
	e := s.Elem
	checkName(s.Pos, "meter", s.Name)
	if r.scope != nil {
		if _, taken := r.scope.Set(s.Name); taken {
			fail(s.Pos, "meter %s: a set of the table has this name", s.Name)
		}
	}
	if e.Comment != "" {
		fail(e.Pos, "the key of a meter cannot have a comment")
	}
	if containsMap(e.Key) {
		fail(e.Key.Position(), "a map is not possible as the key of a meter")
	}
	key := r.eval(e.Key, want{})
	if isConstant(key) {
		fail(e.Key.Position(), "%s is a constant: nothing to meter", describe(e.Key))
	}
	spec := &anonymousSpec{key: key}
	parts := spec.parts()
	declared := &set.Set{Name: s.Name, Flags: set.FlagAnonymous | set.FlagEval, Size: s.Size}
	out := &dynamicStmt{set: declared, key: key, op: unix.NFT_DYNSET_OP_ADD, timeout: e.Timeout}
	if e.Timeout != 0 {
		declared.Flags |= set.FlagTimeout
		out.op = unix.NFT_DYNSET_OP_UPDATE
	}
	var err error
	declared.Key, err = set.NewType(parts)
	checkAt(e.Key.Position(), err)
	out.exprs = dynamicExprs(declared, e.Stmts)
	declared.SetUserData(set.TypeOf{Order: set.OrderOf(parts)}, set.TypeOf{})
	r.out.Anonymous = append(r.out.Anonymous, set.Anonymous{Set: declared})
	out.id = uint32(len(r.out.Anonymous))
	r.add(out)
}
