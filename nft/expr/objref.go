package expr

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// ObjrefMap is the kernel's objref expression that uses the named object which
// an object map gives for a key. google/nftables has only objects of a fixed
// name.
type ObjrefMap struct {
	// Register is the register of the key.
	Register uint32
	SetName  string
	// SetID is the number of an anonymous map, 0 for a named one.
	SetID uint32
}

// table is Expr's.
func (e *ObjrefMap) table() table {
	return table{"objref", []attribute{
		{unix.NFTA_OBJREF_SET_SREG, &e.Register, always},
		{unix.NFTA_OBJREF_SET_NAME, (*unterminated)(&e.SetName), always},
		{unix.NFTA_OBJREF_SET_ID, (*setID)(&e.SetID), always},
	}}
}

// String is Expr's.
func (e *ObjrefMap) String() string {
	return fmt.Sprintf("objref sreg %d set %s", e.Register, e.SetName)
}
