package selector

import (
	"github.com/weft-proxy/weft/nft/datatype"
)

// IPsecKeys are the keys of the xfrm expression (enum nft_xfrm_keys).
var IPsecKeys = [...]HostKey{
	{name: "daddr", l3: "ip", Key: 1, dump: "daddr4", Type: datatype.IPv4Addr, Bits: 32, Order: datatype.BigEndian},
	{name: "daddr", l3: "ip6", Key: 2, dump: "daddr6", Type: datatype.IPv6Addr, Bits: 128, Order: datatype.BigEndian},
	{name: "saddr", l3: "ip", Key: 3, dump: "saddr4", Type: datatype.IPv4Addr, Bits: 32, Order: datatype.BigEndian},
	{name: "saddr", l3: "ip6", Key: 4, dump: "saddr6", Type: datatype.IPv6Addr, Bits: 128, Order: datatype.BigEndian},
	{name: "reqid", Key: 5, dump: "reqid", Type: datatype.Integer, Bits: 32, Order: datatype.HostEndian},
	{name: "spi", Key: 6, dump: "spi", Type: datatype.Integer, Bits: 32, Order: datatype.BigEndian},
}

// IPsecByName returns a key, or nil.
func IPsecByName(l3, name string) *HostKey {
	for i := range IPsecKeys {
		if k := &IPsecKeys[i]; k.name == name && k.l3 == l3 {
			return k
		}
	}
	return nil
}

// XfrmDirection returns the number of a direction (XFRM_POLICY_IN,
// XFRM_POLICY_OUT).
func XfrmDirection(dir string) uint8 {
	if dir == "out" {
		return 1
	}
	return 0
}
