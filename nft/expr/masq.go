package expr

import "golang.org/x/sys/unix"

// Masq is the kernel's masq expression. google/nftables marshals either ports
// or flags; nft(8) sends both.
type Masq struct {
	// MinPort and MaxPort are register numbers, 0 for none.
	MinPort, MaxPort uint32
	// Flags are NF_NAT_RANGE_*.
	Flags uint32
}

// table is Expr's.
func (e *Masq) table() table {
	return table{"masq", []attribute{
		{unix.NFTA_MASQ_FLAGS, &e.Flags, e.Flags != 0},
		{unix.NFTA_MASQ_REG_PROTO_MIN, &e.MinPort, e.MinPort != 0},
		{unix.NFTA_MASQ_REG_PROTO_MAX, &e.MaxPort, e.MaxPort != 0},
	}}
}

// String is Expr's.
func (e *Masq) String() string {
	return "masq" + dumpRegs(0, 0, e.MinPort, e.MaxPort) + dumpFlags(e.Flags)
}
