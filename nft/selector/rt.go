package selector

import (
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/syntax"
)

// RtKeys are the keys of the rt expression (enum nft_rt_keys).
var RtKeys = [...]HostKey{
	{name: "classid", Key: 0, dump: "classid", Type: datatype.Realm, Bits: 32, Order: datatype.HostEndian},
	{name: "nexthop", l3: "ip", Key: 1, dump: "nexthop4", Type: datatype.IPv4Addr, Bits: 32, Order: datatype.BigEndian},
	{name: "nexthop", l3: "ip6", Key: 2, dump: "nexthop6", Type: datatype.IPv6Addr, Bits: 128, Order: datatype.BigEndian},
	{name: "mtu", Key: 3, dump: "tcpmss", Type: datatype.Integer, Bits: 16, Order: datatype.HostEndian},
	{name: "ipsec", Key: 4, dump: "ipsec", Type: datatype.Boolean, Bits: 8, Order: datatype.HostEndian},
}

// RtByName returns the key of a selector that says its family where it must.
func RtByName(x *syntax.Rt) (*HostKey, *syntax.Error) {
	found := false
	for i := range RtKeys {
		k := &RtKeys[i]
		found = found || k.name == x.Key
		if k.name == x.Key && (k.l3 == "" || k.l3 == x.Family) {
			return k, nil
		}
	}
	if found {
		return nil, syntax.ErrorAt(x.KeyPos, "rt %s does not tell the protocol: write rt ip %s or rt ip6 %s", x.Key, x.Key, x.Key)
	}
	return nil, syntax.ErrorAt(x.KeyPos, "unknown key %q of rt: want classid, nexthop, mtu or ipsec", x.Key)
}
