package expr

import (
	"fmt"

	"github.com/weft-proxy/weft/nft/selector"
)

// Xfrm is the kernel's xfrm expression, which google/nftables does not have.
type Xfrm struct {
	Key uint32
	// Dir is 0 for in, 1 for out.
	Dir uint8
	// Spnum counts the states of a packet from 0.
	Spnum, Register uint32
}

// Attributes of xfrm (enum nft_xfrm_attributes).
const (
	nftaXfrmDreg  = 1
	nftaXfrmKey   = 2
	nftaXfrmDir   = 3
	nftaXfrmSpnum = 4
)

// table is Expr's.
func (e *Xfrm) table() table {
	return table{"xfrm", []attribute{
		{nftaXfrmKey, &e.Key, always},
		{nftaXfrmDir, &e.Dir, always},
		{nftaXfrmSpnum, &e.Spnum, always},
		{nftaXfrmDreg, &e.Register, always},
	}}
}

// String is Expr's.
func (e *Xfrm) String() string {
	dir := "in"
	if e.Dir == selector.XfrmDirection("out") {
		dir = "out"
	}
	return fmt.Sprintf("xfrm load %s %d %s => reg %d", dir, e.Spnum, selector.HostDumpName(selector.IPsecKeys[:], e.Key), e.Register)
}
