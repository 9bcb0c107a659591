package expr

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// Objref is the kernel's objref expression, which uses a named object: one of a
// name, or the one that an object map gives for a key. google/nftables does not
// marshal the number of an anonymous map.
type Objref struct {
	// Type is the kernel's number of the kind, for a Name.
	Type uint32
	Name string
	// Register is the register of the key, SetName and SetID the map.
	Register uint32
	SetName  string
	SetID    uint32
}

// Marshal is Expr's.
func (e *Objref) Marshal(uint8) ([]byte, error) {
	var b []byte
	if e.SetName == "" {
		b = AppendU32(b, unix.NFTA_OBJREF_IMM_TYPE, e.Type)
		b = AppendAttr(b, unix.NFTA_OBJREF_IMM_NAME, []byte(e.Name)) // libnftnl sends no NUL
		return marshalNamed("objref", b), nil
	}
	b = AppendU32(b, unix.NFTA_OBJREF_SET_SREG, e.Register)
	b = AppendAttr(b, unix.NFTA_OBJREF_SET_NAME, []byte(e.SetName))
	b = AppendU32(b, unix.NFTA_OBJREF_SET_ID, e.SetID)
	return marshalNamed("objref", b), nil
}

// Unmarshal reads the attributes of NFTA_EXPR_DATA.
func (e *Objref) Unmarshal(data []byte) error {
	*e = Objref{}
	return EachAttr(data, func(typ uint16, v []byte) (err error) {
		switch typ {
		case unix.NFTA_OBJREF_IMM_TYPE:
			e.Type, err = AttrU32(v)
		case unix.NFTA_OBJREF_IMM_NAME:
			e.Name = strings.TrimRight(string(v), "\x00")
		case unix.NFTA_OBJREF_SET_SREG:
			e.Register, err = AttrU32(v)
		case unix.NFTA_OBJREF_SET_NAME:
			e.SetName = strings.TrimRight(string(v), "\x00")
		case unix.NFTA_OBJREF_SET_ID:
			e.SetID, err = AttrU32(v)
		}
		return err
	})
}

// String is Expr's.
func (e *Objref) String() string {
	if e.SetName == "" {
		return fmt.Sprintf("objref type %d name %s", e.Type, e.Name)
	}
	return fmt.Sprintf("objref sreg %d set %s", e.Register, e.SetName)
}

func (e *Objref) setID() *uint32 { return &e.SetID }
