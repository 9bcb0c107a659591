package expr

import "golang.org/x/sys/unix"

// Masq masquerades packets. google/nftables marshals either ports or flags.
type Masq struct {
	MinPort, MaxPort uint32
	// NF_NAT_RANGE_*
	Flags uint32
}

func (e *Masq) table(t *table) {
	t.name, t.text = "masq", func() string {
		return "masq" + formatIf(" proto_min reg %d", e.MinPort) + formatIf(" proto_max reg %d", e.MaxPort) + formatIf(" flags 0x%x", e.Flags)
	}
	t.addIf(e.Flags != 0, unix.NFTA_MASQ_FLAGS, &e.Flags, "")
	t.addIf(e.MinPort != 0, unix.NFTA_MASQ_REG_PROTO_MIN, &e.MinPort, "")
	t.addIf(e.MaxPort != 0, unix.NFTA_MASQ_REG_PROTO_MAX, &e.MaxPort, "")
}
