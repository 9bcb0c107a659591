package expr

import "golang.org/x/sys/unix"

// Dup is the kernel's dup expression. google/nftables always marshals an address,
// which netdev tables do not have.
type Dup struct {
	// Addr and Device are register numbers, 0 for none.
	Addr, Device uint32
}

// table is Expr's.
func (e *Dup) table() table {
	return table{"dup", []attribute{
		{unix.NFTA_DUP_SREG_ADDR, &e.Addr, e.Addr != 0},
		{unix.NFTA_DUP_SREG_DEV, &e.Device, e.Device != 0},
	}}
}

// String is Expr's.
func (e *Dup) String() string {
	return "dup" + dumpIf(" sreg_addr %d", e.Addr) + dumpIf(" sreg_dev %d", e.Device)
}
