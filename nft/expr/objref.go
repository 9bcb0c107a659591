package expr

import (
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/attr"
)

// ObjrefMap is the kernel's objref expression that uses the named object which
// an object map gives for a key. google/nftables has only objects of a fixed
// name.
type ObjrefMap struct {
	// Register is the register of the key.
	Register uint32
	SetName  string
	// SetID is the number of an anonymous map in the rule, see Dynset.
	SetID uint32
}

// table implements Expr.
func (e *ObjrefMap) table(t *table) {
	t.name, t.format = "objref", "objref sreg %[1]d set %[2]s"
	t.add(unix.NFTA_OBJREF_SET_SREG, &e.Register)
	t.add(unix.NFTA_OBJREF_SET_NAME, (*attr.Unterminated)(&e.SetName))
	t.add(unix.NFTA_OBJREF_SET_ID, (*setID)(&e.SetID))
}
