package compile

import (
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/syntax"
	"github.com/weft-proxy/weft/nft/userdata"
)

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
