package expr

import (
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/selector"
)

// Exthdr loads (Dest), writes (Source) or removes a header extension. google/nftables marshals a
// load in another order, and cannot remove extensions.
type Exthdr struct {
	Dest, Source uint32
	Op           selector.ExthdrOp
	// protocol number, option's kind or chunk's type
	Type uint8
	// in bytes
	Offset, Len uint32
	// Present asks whether the extension exists.
	Present bool
}

func (e *Exthdr) table(t *table) {
	t.name = "exthdr"
	switch {
	case e.removes():
		t.format = "exthdr reset %[7]s%[3]d"
	case e.Source != 0:
		t.format = "exthdr write %[7]sreg %[2]d => %[5]db @ %[3]d + %[4]d"
	case e.Present:
		t.format = "exthdr load %[7]s%[5]db @ %[3]d + %[4]d present => reg %[1]d"
	default:
		t.format = "exthdr load %[7]s%[5]db @ %[3]d + %[4]d => reg %[1]d"
	}
	t.addIf(e.Dest != 0, unix.NFTA_EXTHDR_DREG, &e.Dest, "")
	t.addIf(e.Source != 0, unix.NFTA_EXTHDR_SREG, &e.Source, "")
	t.add(unix.NFTA_EXTHDR_TYPE, &e.Type)
	t.addIf(!e.removes(), unix.NFTA_EXTHDR_OFFSET, &e.Offset, "")
	t.addIf(!e.removes(), unix.NFTA_EXTHDR_LEN, &e.Len, "")
	t.addIf(e.Dest != 0, unix.NFTA_EXTHDR_FLAGS, &e.Present, "") // NFT_EXTHDR_F_PRESENT
	t.addWord(unix.NFTA_EXTHDR_OP, (*uint32)(&e.Op), func(op uint32) string {
		return wordAt(op, "ipv6 ", "tcpopt ", "ipv4 ", "") // libnftnl has no word for chunks of SCTP
	})
}

func (e *Exthdr) removes() bool { return e.Dest == 0 && e.Source == 0 }
