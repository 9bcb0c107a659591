package expr

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/selector"
)

// Exthdr is the kernel's exthdr expression. With Dest it loads a field of an
// extension of a header, with Source it writes one, and without both it removes
// the extension. google/nftables marshals the attributes of a load in another
// order, and cannot remove extensions.
type Exthdr struct {
	// Dest is the register of a load, Source that of a write.
	Dest, Source uint32
	Op           selector.ExthdrOp
	// Type is the extension: a protocol number, an option's kind, a chunk's
	// type.
	Type uint8
	// Offset and Len are in bytes.
	Offset, Len uint32
	// Present asks whether the extension exists, instead of for its bytes.
	Present bool
}

// table is Expr's.
func (e *Exthdr) table() table {
	return table{"exthdr", []attribute{
		{unix.NFTA_EXTHDR_DREG, &e.Dest, e.Dest != 0},
		{unix.NFTA_EXTHDR_SREG, &e.Source, e.Source != 0},
		{unix.NFTA_EXTHDR_TYPE, &e.Type, always},
		{unix.NFTA_EXTHDR_OFFSET, &e.Offset, !e.removes()},
		{unix.NFTA_EXTHDR_LEN, &e.Len, !e.removes()},
		{unix.NFTA_EXTHDR_FLAGS, &e.Present, e.Dest != 0}, // NFT_EXTHDR_F_PRESENT
		{unix.NFTA_EXTHDR_OP, (*uint32)(&e.Op), always},
	}}
}

// removes reports whether the extension is removed.
func (e *Exthdr) removes() bool { return e.Dest == 0 && e.Source == 0 }

// String is Expr's. libnftnl has no word for chunks of SCTP.
func (e *Exthdr) String() string {
	op := ""
	switch e.Op {
	case selector.ExthdrIPv6:
		op = "ipv6 "
	case selector.ExthdrTCP:
		op = "tcpopt "
	case selector.ExthdrIPv4:
		op = "ipv4 "
	}
	switch {
	case e.removes():
		return fmt.Sprintf("exthdr reset %s%d", op, e.Type)
	case e.Source != 0:
		return fmt.Sprintf("exthdr write %sreg %d => %db @ %d + %d", op, e.Source, e.Len, e.Type, e.Offset)
	}
	present := ""
	if e.Present {
		present = " present"
	}
	return fmt.Sprintf("exthdr load %s%db @ %d + %d%s => reg %d", op, e.Len, e.Type, e.Offset, present, e.Dest)
}
