package compile

import (
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/syntax"
)

// meter evaluates "meter NAME { KEY STATEMENT }": an update of a set that the rule
// brings along, like those of braces, but with a name.
func (r *ruleCompiler) meter(s *syntax.Meter) error {
	e := s.Elem
	if err := datatype.CheckName(s.Name); err != nil {
		return errorAt(s.Pos, "meter: %s", err)
	}
	if r.scope != nil {
		if _, taken := r.scope.Set(s.Name); taken {
			return errorAt(s.Pos, "meter %s: a set of the table has this name", s.Name)
		}
	}
	if e.Comment != "" {
		return errorAt(e.Pos, "the key of a meter cannot have a comment")
	}
	if containsMap(e.Key) {
		return errorAt(e.Key.Position(), "a map is not possible as the key of a meter")
	}
	key, err := r.eval(e.Key, want{})
	if err != nil {
		return err
	}
	if isConstant(key) {
		return errorAt(e.Key.Position(), "%s is a constant: nothing to meter", describe(e.Key))
	}
	spec := &anonymousSpec{key: key}
	parts := spec.parts()
	set := &Set{Name: s.Name, Flags: SetAnonymous | SetEval, Size: s.Size}
	out := &dynamicStmt{set: set, key: key, op: unix.NFT_DYNSET_OP_ADD, timeout: e.Timeout}
	if e.Timeout != 0 {
		set.Flags |= SetTimeout
		out.op = unix.NFT_DYNSET_OP_UPDATE
	}
	if set.Key, err = newType(parts); err != nil {
		return errorAt(e.Key.Position(), "%s", err)
	}
	if out.exprs, err = statefulExprs(e.Stmts); err != nil {
		return err
	}
	if err := checkDynamic(set, e.Stmts, out.exprs); err != nil {
		return err
	}
	set.UserData = appendUint32([]byte{udataSetKeyOrder}, uint32(orderOf(parts)))
	r.out.Anonymous = append(r.out.Anonymous, AnonymousSet{Set: set})
	out.id = uint32(len(r.out.Anonymous))
	r.add(out)
	return nil
}
