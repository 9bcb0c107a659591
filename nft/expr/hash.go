package expr

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Hash is the kernel's hash expression. google/nftables leaves out a seed of
// 0, which means that the kernel chooses one.
type Hash struct {
	// Source and Len are those of jhash, 0 for symhash.
	Source, Len uint32
	Dest        uint32
	Mod         uint32
	// Seed is nil where the kernel chooses one.
	Seed   *uint32
	Offset uint32
	// Type is NFT_HASH_JENKINS or NFT_HASH_SYM.
	Type uint32
}

// Marshal is Expr's.
func (e *Hash) Marshal(uint8) ([]byte, error) {
	var b []byte
	if e.Source != 0 {
		b = AppendU32(b, unix.NFTA_HASH_SREG, e.Source)
	}
	b = AppendU32(b, unix.NFTA_HASH_DREG, e.Dest)
	if e.Source != 0 {
		b = AppendU32(b, unix.NFTA_HASH_LEN, e.Len)
	}
	b = AppendU32(b, unix.NFTA_HASH_MODULUS, e.Mod)
	if e.Seed != nil {
		b = AppendU32(b, unix.NFTA_HASH_SEED, *e.Seed)
	}
	b = AppendU32(b, unix.NFTA_HASH_OFFSET, e.Offset)
	b = AppendU32(b, unix.NFTA_HASH_TYPE, e.Type)
	return marshalNamed("hash", b), nil
}

// Unmarshal reads the attributes of NFTA_EXPR_DATA.
func (e *Hash) Unmarshal(data []byte) error {
	*e = Hash{}
	return EachAttr(data, func(typ uint16, v []byte) (err error) {
		var to *uint32
		switch typ {
		case unix.NFTA_HASH_SREG:
			to = &e.Source
		case unix.NFTA_HASH_DREG:
			to = &e.Dest
		case unix.NFTA_HASH_LEN:
			to = &e.Len
		case unix.NFTA_HASH_MODULUS:
			to = &e.Mod
		case unix.NFTA_HASH_SEED:
			e.Seed = new(uint32)
			to = e.Seed
		case unix.NFTA_HASH_OFFSET:
			to = &e.Offset
		case unix.NFTA_HASH_TYPE:
			to = &e.Type
		default:
			return nil
		}
		*to, err = AttrU32(v)
		return err
	})
}

// String is Expr's.
func (e *Hash) String() string {
	s := fmt.Sprintf("hash reg %d = symhash()", e.Dest)
	if e.Type != unix.NFT_HASH_SYM {
		seed := uint32(0)
		if e.Seed != nil {
			seed = *e.Seed
		}
		s = fmt.Sprintf("hash reg %d = jhash(reg %d, %d, 0x%x)", e.Dest, e.Source, e.Len, seed)
	}
	s += fmt.Sprintf(" %% mod %d", e.Mod)
	if e.Offset != 0 {
		s += fmt.Sprintf(" offset %d", e.Offset)
	}
	return s
}

func (e *Hash) setID() *uint32 { return nil }
