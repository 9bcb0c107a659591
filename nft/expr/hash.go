package expr

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Hash is the kernel's hash expression. google/nftables sends a source and a
// length for symhash too, and leaves out a seed of 0.
type Hash struct {
	// Source is the register that jhash reads and Len its length in bytes; both
	// are 0 for symhash.
	Source, Len uint32
	Dest        uint32
	Mod         uint32
	// Seed is nil if the kernel chooses a seed.
	Seed   *uint32
	Offset uint32
	// Type is NFT_HASH_JENKINS or NFT_HASH_SYM.
	Type uint32
}

// table is Expr's.
func (e *Hash) table() table {
	return table{"hash", []attribute{
		{unix.NFTA_HASH_SREG, &e.Source, e.Source != 0},
		{unix.NFTA_HASH_DREG, &e.Dest, always},
		{unix.NFTA_HASH_LEN, &e.Len, e.Source != 0},
		{unix.NFTA_HASH_MODULUS, &e.Mod, always},
		{unix.NFTA_HASH_SEED, &e.Seed, e.Seed != nil},
		{unix.NFTA_HASH_OFFSET, &e.Offset, always},
		{unix.NFTA_HASH_TYPE, &e.Type, always},
	}}
}

// String is Expr's.
func (e *Hash) String() string {
	function := "symhash()"
	if e.Type != unix.NFT_HASH_SYM {
		seed := uint32(0)
		if e.Seed != nil {
			seed = *e.Seed
		}
		function = fmt.Sprintf("jhash(reg %d, %d, 0x%x)", e.Source, e.Len, seed)
	}
	return fmt.Sprintf("hash reg %d = %s %% mod %d", e.Dest, function, e.Mod) + dumpIf(" offset %d", e.Offset)
}
