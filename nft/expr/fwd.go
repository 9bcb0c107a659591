package expr

import "golang.org/x/sys/unix"

// Fwd sends packets to a device. google/nftables does not have it.
type Fwd struct {
	Device, Addr uint32
	// NFPROTO_IPV4 or NFPROTO_IPV6 with an Addr, else 0
	Family uint32
}

const (
	nftaFwdSregAddr = 2
	nftaFwdNFProto  = 3
)

func (e *Fwd) table(t *table) {
	t.name, t.format = "fwd", "fwd sreg_dev %[1]d"
	t.add(unix.NFTA_FWD_SREG_DEV, &e.Device)
	t.addIf(e.Addr != 0, nftaFwdSregAddr, &e.Addr, " sreg_addr %d")
	t.addIf(e.Family != 0, nftaFwdNFProto, &e.Family, " nfproto %d")
}
