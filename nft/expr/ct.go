package expr

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/selector"
)

// CT is the kernel's ct expression. google/nftables marshals the direction in
// four bytes although the kernel reads one, and never for the address keys that
// name their protocol.
type CT struct {
	Key uint32
	// Dest is the register that the key is loaded into, Source the register
	// that it is set from. One of them is 0.
	Dest, Source uint32
	Direction    selector.Direction
}

// table is Expr's.
func (e *CT) table() table {
	return table{"ct", []attribute{
		{unix.NFTA_CT_KEY, &e.Key, always},
		{unix.NFTA_CT_DREG, &e.Dest, e.Dest != 0},
		{unix.NFTA_CT_DIRECTION, &e.Direction, e.Direction != selector.NoDirection},
		{unix.NFTA_CT_SREG, &e.Source, e.Source != 0},
	}}
}

// String is Expr's.
func (e *CT) String() string {
	s := fmt.Sprintf("ct load %s => reg %d", selector.CTDumpName(e.Key), e.Dest)
	if e.Source != 0 {
		s = fmt.Sprintf("ct set %s with reg %d", selector.CTDumpName(e.Key), e.Source)
	}
	switch e.Direction {
	case selector.DirectionOriginal:
		s += " , dir original"
	case selector.DirectionReply:
		s += " , dir reply"
	}
	return s
}
