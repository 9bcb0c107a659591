package selector

import (
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/syntax"
)

// RtKeys are enum nft_rt_keys.
var RtKeys = Keys{
	{Name: "classid", Key: 0, Type: datatype.Realm, Bits: 32, Order: datatype.HostEndian},
	{Name: "ip nexthop", Key: 1, dump: "nexthop4", Type: datatype.IPv4Addr, Bits: 32, Order: datatype.BigEndian},
	{Name: "ip6 nexthop", Key: 2, dump: "nexthop6", Type: datatype.IPv6Addr, Bits: 128, Order: datatype.BigEndian},
	{Name: "mtu", Key: 3, dump: "tcpmss", Type: datatype.Integer, Bits: 16, Order: datatype.HostEndian},
	{Name: "ipsec", Key: 4, Type: datatype.Boolean, Bits: 8, Order: datatype.HostEndian},
}

func rtKey(x *syntax.Rt) (*Key, *syntax.Error) {
	if k := RtKeys.ByName("", x.Key); k != nil {
		return k, nil
	}
	if k := RtKeys.ByName(x.Family, x.Key); k != nil {
		return k, nil
	}
	if RtKeys.ByName("ip", x.Key) != nil {
		return nil, syntax.ErrorAt(x.KeyPos, "rt %s does not tell the protocol: write rt ip %s or rt ip6 %s", x.Key, x.Key, x.Key)
	}
	return nil, syntax.ErrorAt(x.KeyPos, "unknown key %q of rt: want classid, nexthop, mtu or ipsec", x.Key)
}

// SocketKeys are enum nft_socket_keys.
var SocketKeys = Keys{
	{Name: "transparent", Key: 0, Type: datatype.Integer, Bits: 8, Order: datatype.HostEndian, Flag: true},
	{Name: "mark", Key: 1, Type: datatype.Mark, Bits: 32, Order: datatype.HostEndian},
	{Name: "wildcard", Key: 2, Type: datatype.Integer, Bits: 8, Order: datatype.HostEndian, Flag: true},
	{Name: "cgroupv2", Key: 3, Type: datatype.CGroupV2, Bits: 64, Order: datatype.HostEndian},
}

// IPsecKeys are enum nft_xfrm_keys.
var IPsecKeys = Keys{
	{Name: "ip daddr", Key: 1, dump: "daddr4", Type: datatype.IPv4Addr, Bits: 32, Order: datatype.BigEndian},
	{Name: "ip6 daddr", Key: 2, dump: "daddr6", Type: datatype.IPv6Addr, Bits: 128, Order: datatype.BigEndian},
	{Name: "ip saddr", Key: 3, dump: "saddr4", Type: datatype.IPv4Addr, Bits: 32, Order: datatype.BigEndian},
	{Name: "ip6 saddr", Key: 4, dump: "saddr6", Type: datatype.IPv6Addr, Bits: 128, Order: datatype.BigEndian},
	{Name: "reqid", Key: 5, Type: datatype.Integer, Bits: 32, Order: datatype.HostEndian},
	{Name: "spi", Key: 6, Type: datatype.Integer, Bits: 32, Order: datatype.BigEndian},
}

// XfrmDirection returns XFRM_POLICY_OUT for out, else XFRM_POLICY_IN.
func XfrmDirection(dir string) uint8 {
	if dir == "out" {
		return 1
	}
	return 0
}
