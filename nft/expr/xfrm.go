package expr

import "github.com/weft-proxy/weft/nft/selector"

// Xfrm loads a key of enum nft_xfrm_keys. google/nftables does not have it.
type Xfrm struct {
	Key uint32
	// 0 for in, 1 for out
	Dir uint8
	// packet's state, from 0
	Spnum    uint32
	Register uint32
}

const (
	nftaXfrmDreg  = 1
	nftaXfrmKey   = 2
	nftaXfrmDir   = 3
	nftaXfrmSpnum = 4
)

func (e *Xfrm) table(t *table) {
	t.name, t.format = "xfrm", "xfrm load in %[3]d %[1]s => reg %[4]d"
	if e.Dir == selector.XfrmDirection("out") {
		t.format = "xfrm load out %[3]d %[1]s => reg %[4]d"
	}
	t.addWord(nftaXfrmKey, &e.Key, func(key uint32) string { return selector.IPsecKeys.DumpName(key) })
	t.add(nftaXfrmDir, &e.Dir)
	t.add(nftaXfrmSpnum, &e.Spnum)
	t.add(nftaXfrmDreg, &e.Register)
}
