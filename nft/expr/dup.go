package expr

import "golang.org/x/sys/unix"

// Dup duplicates packets. google/nftables always marshals an address, which netdev tables do not
// have.
type Dup struct {
	Addr, Device uint32
}

func (e *Dup) table(t *table) {
	t.name = "dup"
	t.addIf(e.Addr != 0, unix.NFTA_DUP_SREG_ADDR, &e.Addr, " sreg_addr %d")
	t.addIf(e.Device != 0, unix.NFTA_DUP_SREG_DEV, &e.Device, " sreg_dev %d")
}
