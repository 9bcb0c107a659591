package expr

import (
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
)

// NATFlags are indexed by the bits of NF_NAT_RANGE_*.
var NATFlags = []string{2: "random", 3: "persistent", 4: "fully-random"}

// NAT translates addresses and ports. google/nftables has a field for each flag.
type NAT struct {
	// NFT_NAT_SNAT or NFT_NAT_DNAT, and NFPROTO_*
	Type, Family                       uint32
	AddrMin, AddrMax, PortMin, PortMax uint32
	// NF_NAT_RANGE_*
	Flags uint32
}

func (e *NAT) table(t *table) {
	t.name, t.format = "nat", "nat %[1]s %[2]s"
	t.addWord(unix.NFTA_NAT_TYPE, &e.Type, func(typ uint32) string { return wordAt(typ, "snat", "dnat") })
	t.addWord(unix.NFTA_NAT_FAMILY, &e.Family, func(family uint32) string { return nft.Family(family).String() })
	t.addIf(e.AddrMin != 0, unix.NFTA_NAT_REG_ADDR_MIN, &e.AddrMin, " addr_min reg %d")
	t.addIf(e.AddrMax != 0, unix.NFTA_NAT_REG_ADDR_MAX, &e.AddrMax, " addr_max reg %d")
	t.addIf(e.PortMin != 0, unix.NFTA_NAT_REG_PROTO_MIN, &e.PortMin, " proto_min reg %d")
	t.addIf(e.PortMax != 0, unix.NFTA_NAT_REG_PROTO_MAX, &e.PortMax, " proto_max reg %d")
	t.addIf(e.Flags != 0, unix.NFTA_NAT_FLAGS, &e.Flags, " flags 0x%x")
}
