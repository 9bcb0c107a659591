package expr

import (
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/attr"
)

// Objref uses a named object.
type Objref struct {
	// NFT_OBJECT_*
	Type uint32
	Name string
}

func (e *Objref) table(t *table) {
	t.name, t.format = "objref", "objref type %[1]d name %[2]s"
	t.add(unix.NFTA_OBJREF_IMM_TYPE, &e.Type)
	t.add(unix.NFTA_OBJREF_IMM_NAME, (*attr.Unterminated)(&e.Name))
}

// ObjrefMap uses a named object from an object map; google/nftables does not have it.
type ObjrefMap struct {
	Register uint32
	SetName  string
	// see Dynset
	SetID uint32
}

func (e *ObjrefMap) table(t *table) {
	t.name, t.format = "objref", "objref sreg %[1]d set %[2]s"
	t.add(unix.NFTA_OBJREF_SET_SREG, &e.Register)
	t.add(unix.NFTA_OBJREF_SET_NAME, (*attr.Unterminated)(&e.SetName))
	t.add(unix.NFTA_OBJREF_SET_ID, (*setID)(&e.SetID))
}
