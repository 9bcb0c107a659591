package selector

import (
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/datatype"
)

// by nf_proto, and by Ethernet type
var (
	networks = []upper{
		{uint64(unix.NFPROTO_IPV4), "ip"},
		{uint64(unix.NFPROTO_IPV6), "ip6"},
	}
	etherNetworks = []upper{
		{unix.ETH_P_IP, "ip"},
		{unix.ETH_P_ARP, "arp"},
		{unix.ETH_P_IPV6, "ip6"},
		{unix.ETH_P_8021Q, "vlan"},
		{unix.ETH_P_8021AD, "vlan"},
	}
)

// inet tables have the network protocol in meta nfproto, netdev tables in meta protocol
var (
	HeaderInet = Header{Name: "inet", Layer: LayerLink, Key: "nfproto", Uppers: networks}
	HeaderLink = Header{Name: "netdev", Layer: LayerLink, Key: "protocol", Uppers: etherNetworks}
)

var HeaderEther = Header{
	Name: "ether", Desc: 17, Layer: LayerLink, Uppers: etherNetworks, Length: 14 * 8,
	Fields: []Field{
		{Name: "daddr", Type: datatype.EtherAddr, Offset: 0, Bits: 48},
		{Name: "saddr", Type: datatype.EtherAddr, Offset: 48, Bits: 48},
		{Name: "type", Type: datatype.EtherType, Offset: 96, Bits: 16, Protocol: true},
	},
}

// after the Ethernet header of a tagged frame
var headerVLAN = Header{
	Name: "vlan", Desc: 16, Layer: LayerLink, Uppers: etherNetworks, Length: 4 * 8,
	Fields: []Field{
		{Name: "pcp", Type: datatype.Integer, Offset: 0, Bits: 3},
		{Name: "dei", Type: datatype.Integer, Offset: 3, Bits: 1},
		{Name: "cfi", Type: datatype.Integer, Offset: 3, Bits: 1},
		{Name: "id", Type: datatype.Integer, Offset: 4, Bits: 12},
		{Name: "type", Type: datatype.EtherType, Offset: 16, Bits: 16, Protocol: true},
	},
}
