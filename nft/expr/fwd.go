package expr

import "golang.org/x/sys/unix"

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

// table implements Expr.
func (e *Fwd) table(t *table) {
	t.name, t.format = "fwd", "fwd sreg_dev %[1]d"
	t.add(unix.NFTA_FWD_SREG_DEV, &e.Device)
	t.addIf(e.Addr != 0, nftaFwdSregAddr, &e.Addr, " sreg_addr %d")
	t.addIf(e.Family != 0, nftaFwdNFProto, &e.Family, " nfproto %d")
}
