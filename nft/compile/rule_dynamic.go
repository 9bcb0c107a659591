package compile

import (
	"time"

	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/userdata"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/syntax"
)

// dynamicStmt changes a named set from the packet path.
type dynamicStmt struct {
	op      uint32
	set     *set.Set
	key     term
	data    term
	timeout time.Duration
	exprs   []expr.Expr
	// id is the number of a meter's set; 0 for named ones.
	id uint32
}

// dynamic evaluates "update @set { KEY timeout T : DATA }".
func (r *ruleCompiler) dynamic(s *syntax.Dynamic) error {
	declared, err := r.named(s.Set)
	if err != nil {
		return err
	}
	out := &dynamicStmt{set: declared, timeout: s.Elem.Timeout}
	switch s.Op {
	case "add":
		out.op = unix.NFT_DYNSET_OP_ADD
	case "update":
		out.op = unix.NFT_DYNSET_OP_UPDATE
	case "delete":
		out.op = expr.DynsetDelete
	default:
		return syntax.ErrorAt(s.Pos, "unknown operation %q: want add, update or delete", s.Op)
	}
	e := s.Elem
	switch {
	case declared.Flags&set.FlagInterval != 0:
		return syntax.ErrorAt(s.Set.Pos, "@%s has the flag interval: the kernel cannot change it from a rule", declared.Name)
	case declared.Flags&set.FlagConstant != 0:
		return syntax.ErrorAt(s.Set.Pos, "@%s has the flag constant: a rule cannot change it", declared.Name)
	case e.Comment != "":
		return syntax.ErrorAt(e.Pos, "an element that a rule adds cannot have a comment")
	case e.Timeout != 0 && declared.Flags&set.FlagTimeout == 0:
		return syntax.ErrorAt(e.Pos, "@%s has no flag timeout: its elements cannot have one", declared.Name)
	case declared.Object != "":
		return syntax.ErrorAt(s.Set.Pos, "@%s is a map of objects: a rule cannot change it", declared.Name)
	case declared.Map && declared.Verdict:
		return syntax.ErrorAt(s.Set.Pos, "@%s is a verdict map: a rule cannot change it", declared.Name)
	case declared.Map && e.Value == nil && s.Op != "delete":
		return syntax.ErrorAt(e.Pos, "@%s is a map: write { KEY : DATA }", declared.Name)
	case !declared.Map && e.Value != nil:
		return syntax.ErrorAt(e.Value.Position(), "@%s is a set: its elements have no data", declared.Name)
	}
	if out.key, err = r.dynamicPart(e.Key, &declared.Key); err != nil {
		return err
	}
	if e.Value != nil {
		if containsMap(e.Value) {
			return syntax.ErrorAt(e.Value.Position(), "the result of a map as data of a dynamic update makes nft(8) 1.0.6 abort when it lists the rule: use constants or header fields")
		}
		if out.data, err = r.dynamicPart(e.Value, &declared.Data); err != nil {
			return err
		}
	}
	if out.exprs, err = dynamicExprs(declared, e.Stmts); err != nil {
		return err
	}
	r.add(out)
	return nil
}

// dynamicExprs returns the expressions of the statements that each new element of a
// set gets.
func dynamicExprs(declared *set.Set, stmts []syntax.Stmt) ([]expr.Expr, error) {
	if len(stmts) == 0 {
		return nil, nil
	}
	words, err := expr.StatefulWords(stmts)
	if err != nil {
		return nil, err
	}
	if err := declared.CheckStatements(words); err != nil {
		return nil, syntax.ErrorAt(stmts[0].Position(), "@%s: %s", declared.Name, err)
	}
	return expr.NewStatefuls(stmts)
}

// dynamicPart evaluates the key or the data of a dynamic statement.
func (r *ruleCompiler) dynamicPart(x syntax.Expr, typ *set.Type) (term, error) {
	w, err := wantOf(typ)
	if err != nil {
		return nil, syntax.ErrorAt(x.Position(), "%s", err)
	}
	if containsMap(x) {
		return nil, syntax.ErrorAt(x.Position(), "a map is not possible as the key of a dynamic statement")
	}
	t, err := r.eval(x, w)
	if err != nil {
		return nil, err
	}
	parts, terms := w.parts, []term{t}
	if c, ok := t.(*concatTerm); ok {
		terms = c.parts
	}
	if parts == nil {
		parts = []want{w}
	}
	same := len(parts) == len(terms)
	for i := 0; same && i < len(terms); i++ {
		same = terms[i].info().typ == parts[i].typ
	}
	switch {
	case !same:
		return nil, syntax.ErrorAt(x.Position(), "datatype mismatch: want %s, %s is %s", w.name(), describe(x), typeName(t))
	case isConstant(t) && !isSingle(t):
		return nil, syntax.ErrorAt(x.Position(), "%s is more than one value", describe(x))
	}
	return t, nil
}

// containsMap reports whether an expression looks something up in a map.
func containsMap(x syntax.Expr) bool {
	switch x := x.(type) {
	case *syntax.Map:
		return true
	case *syntax.Concat:
		for _, p := range x.Parts {
			if containsMap(p) {
				return true
			}
		}
	case *syntax.Binary:
		return containsMap(x.X)
	}
	return false
}

// keyRegister takes the registers of the key. For maps nft takes a 128-bit register
// each for key and data, also where the key is a concatenation; of a longer one it
// overwrites the end, which is not repeated here.
func (s *dynamicStmt) keyRegister(g *generator) (register, error) {
	if s.data == nil {
		return g.regs.takeFor(s.key)
	}
	i := s.key.info()
	return g.regs.take((max(i.slots(), 1)+3)&^3, i.pos)
}

// generate is statement's.
func (s *dynamicStmt) generate(g *generator) error {
	defer g.regs.reset()
	key, err := s.keyRegister(g)
	if err != nil {
		return err
	}
	if err := g.load(s.key, key); err != nil {
		return err
	}
	out := &expr.Dynset{Op: s.op, Key: key.number(), SetName: s.set.Name, SetID: s.id, Timeout: s.timeout, Exprs: s.exprs}
	if s.data != nil {
		data, err := g.regs.takeFor(s.data)
		if err != nil {
			return err
		}
		if err := g.load(s.data, data); err != nil {
			return err
		}
		out.Data = data.number()
	}
	g.emitOwn(out)
	return nil
}

// meter evaluates "meter NAME { KEY STATEMENT }": an update of a set that the rule
// brings along, like those of braces, but with a name.
func (r *ruleCompiler) meter(s *syntax.Meter) error {
	e := s.Elem
	if err := datatype.CheckName(s.Name); err != nil {
		return syntax.ErrorAt(s.Pos, "meter: %s", err)
	}
	if r.scope != nil {
		if _, taken := r.scope.Set(s.Name); taken {
			return syntax.ErrorAt(s.Pos, "meter %s: a set of the table has this name", s.Name)
		}
	}
	if e.Comment != "" {
		return syntax.ErrorAt(e.Pos, "the key of a meter cannot have a comment")
	}
	if containsMap(e.Key) {
		return syntax.ErrorAt(e.Key.Position(), "a map is not possible as the key of a meter")
	}
	key, err := r.eval(e.Key, want{})
	if err != nil {
		return err
	}
	if isConstant(key) {
		return syntax.ErrorAt(e.Key.Position(), "%s is a constant: nothing to meter", describe(e.Key))
	}
	spec := &anonymousSpec{key: key}
	parts := spec.parts()
	declared := &set.Set{Name: s.Name, Flags: set.FlagAnonymous | set.FlagEval, Size: s.Size}
	out := &dynamicStmt{set: declared, key: key, op: unix.NFT_DYNSET_OP_ADD, timeout: e.Timeout}
	if e.Timeout != 0 {
		declared.Flags |= set.FlagTimeout
		out.op = unix.NFT_DYNSET_OP_UPDATE
	}
	if declared.Key, err = set.NewType(parts); err != nil {
		return syntax.ErrorAt(e.Key.Position(), "%s", err)
	}
	if out.exprs, err = dynamicExprs(declared, e.Stmts); err != nil {
		return err
	}
	declared.UserData = userdata.AppendUint32([]byte{set.UdataSetKeyOrder}, uint32(set.OrderOf(parts)))
	r.out.Anonymous = append(r.out.Anonymous, set.Anonymous{Set: declared})
	out.id = uint32(len(r.out.Anonymous))
	r.add(out)
	return nil
}
