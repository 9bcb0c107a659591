package expr

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Fwd is the kernel's fwd expression, which google/nftables does not have.
type Fwd struct {
	// Device and Addr are register numbers; Addr is 0 for none.
	Device, Addr uint32
	// Family is NFPROTO_IPV4 or NFPROTO_IPV6 with an Addr, else 0.
	Family uint32
}

// Attributes of fwd that golang.org/x/sys does not have (enum
// nft_fwd_attributes).
const (
	nftaFwdSregAddr = 2
	nftaFwdNFProto  = 3
)

// table is Expr's.
func (e *Fwd) table() table {
	return table{"fwd", []attribute{
		{unix.NFTA_FWD_SREG_DEV, &e.Device, always},
		{nftaFwdSregAddr, &e.Addr, e.Addr != 0},
		{nftaFwdNFProto, &e.Family, e.Family != 0},
	}}
}

// String is Expr's.
func (e *Fwd) String() string {
	return fmt.Sprintf("fwd sreg_dev %d", e.Device) + dumpIf(" sreg_addr %d", e.Addr) + dumpIf(" nfproto %d", e.Family)
}
