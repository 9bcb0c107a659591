package expr

import (
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Dynset is the kernel's dynset expression. google/nftables takes as stateful
// expressions only its own.
type Dynset struct {
	// Op is NFT_DYNSET_OP_ADD, UPDATE or DELETE.
	Op uint32
	// Key and Data are register numbers; Data is 0 in sets.
	Key, Data uint32
	SetName   string
	// SetID is the number of an anonymous set, 0 for named ones.
	SetID   uint32
	Timeout time.Duration
	// Exprs are the stateful expressions of a new element.
	Exprs []Expr
}

// Attributes that golang.org/x/sys does not have (enum nft_dynset_attributes).
const (
	NftaDynsetExpressions = 10
	nftDynsetFlagExpr     = 2
	NftDynsetDelete       = 2
)

// Marshal is Expr's.
func (e *Dynset) Marshal(family uint8) ([]byte, error) {
	var b []byte
	b = AppendU32(b, unix.NFTA_DYNSET_SREG_KEY, e.Key)
	if e.Data != 0 {
		b = AppendU32(b, unix.NFTA_DYNSET_SREG_DATA, e.Data)
	}
	b = AppendU32(b, unix.NFTA_DYNSET_OP, e.Op)
	if e.Timeout != 0 {
		b = AppendAttr(b, unix.NFTA_DYNSET_TIMEOUT, binary.BigEndian.AppendUint64(nil, uint64(e.Timeout.Milliseconds())))
	}
	b = AppendAttr(b, unix.NFTA_DYNSET_SET_NAME, append([]byte(e.SetName), 0))
	b = AppendU32(b, unix.NFTA_DYNSET_SET_ID, e.SetID)
	var list []byte
	for _, x := range e.Exprs {
		data, err := x.Marshal(family)
		if err != nil {
			return nil, err
		}
		if len(e.Exprs) == 1 {
			b = AppendAttr(b, Nested|unix.NFTA_DYNSET_EXPR, data)
		}
		list = AppendAttr(list, Nested|unix.NFTA_LIST_ELEM, data)
	}
	if len(e.Exprs) > 1 {
		b = AppendAttr(b, Nested|NftaDynsetExpressions, list)
		b = AppendU32(b, unix.NFTA_DYNSET_FLAGS, nftDynsetFlagExpr)
	}
	return marshalNamed("dynset", b), nil
}

// Unmarshal reads the attributes of NFTA_EXPR_DATA. The stateful expressions
// are not read back.
func (e *Dynset) Unmarshal(data []byte) error {
	*e = Dynset{}
	return EachAttr(data, func(typ uint16, v []byte) (err error) {
		switch typ {
		case unix.NFTA_DYNSET_SREG_KEY:
			e.Key, err = AttrU32(v)
		case unix.NFTA_DYNSET_SREG_DATA:
			e.Data, err = AttrU32(v)
		case unix.NFTA_DYNSET_OP:
			e.Op, err = AttrU32(v)
		case unix.NFTA_DYNSET_SET_ID:
			e.SetID, err = AttrU32(v)
		case unix.NFTA_DYNSET_SET_NAME:
			e.SetName = strings.TrimRight(string(v), "\x00")
		case unix.NFTA_DYNSET_TIMEOUT:
			if len(v) != 8 {
				return ErrAttr
			}
			e.Timeout = time.Duration(binary.BigEndian.Uint64(v)) * time.Millisecond
		}
		return err
	})
}

// String is Expr's.
func (e *Dynset) String() string {
	op := [...]string{"add", "update", "delete"}
	s := fmt.Sprintf("dynset %s reg_key %d set %s", op[min(e.Op, 2)], e.Key, e.SetName)
	if e.Data != 0 {
		s += fmt.Sprintf(" sreg_data %d", e.Data)
	}
	if e.Timeout != 0 {
		s += fmt.Sprintf(" timeout %dms", e.Timeout.Milliseconds())
	}
	for _, x := range e.Exprs {
		s += " expr [ " + x.String() + " ]"
	}
	return s
}

func (e *Dynset) setID() *uint32 { return &e.SetID }
