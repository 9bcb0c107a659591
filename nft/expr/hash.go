package expr

import (
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/attr"
)

// Hash is jhash or symhash. google/nftables sends a source and a length for symhash too, and leaves
// out a seed of 0.
type Hash struct {
	// 0 for symhash
	Source, Len uint32
	Dest        uint32
	Mod         uint32
	// nil if the kernel chooses
	Seed   *uint32
	Offset uint32
	// NFT_HASH_JENKINS or NFT_HASH_SYM
	Type uint32
}

func (e *Hash) table(t *table) {
	t.name, t.format = "hash", "hash reg %[2]d = jhash(reg %[1]d, %[3]d, 0x%[5]x) %% mod %[4]d"
	if e.Type == unix.NFT_HASH_SYM {
		t.format = "hash reg %[2]d = symhash() %% mod %[4]d"
	}
	t.addIf(e.Source != 0, unix.NFTA_HASH_SREG, &e.Source, "")
	t.add(unix.NFTA_HASH_DREG, &e.Dest)
	t.addIf(e.Source != 0, unix.NFTA_HASH_LEN, &e.Len, "")
	t.add(unix.NFTA_HASH_MODULUS, &e.Mod)
	t.addIf(e.Seed != nil, unix.NFTA_HASH_SEED, attr.Optional[uint32]{To: &e.Seed}, "")
	t.addIf(true, unix.NFTA_HASH_OFFSET, &e.Offset, " offset %d")
	t.add(unix.NFTA_HASH_TYPE, &e.Type)
}
