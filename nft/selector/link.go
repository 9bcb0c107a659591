package selector

import "github.com/weft-proxy/weft/nft/datatype"

// Ethernet types (linux/if_ether.h). ARPHRDEther is the hardware type of Ethernet in ARP
// (linux/if_arp.h).
const (
	EtherIP     = 0x0800
	etherARP    = 0x0806
	etherVLAN   = 0x8100
	EtherIP6    = 0x86dd
	etherQinQ   = 0x88a8
	ARPHRDEther = 1
)

// nf_proto values (linux/netfilter.h), as untyped constants: nft.Family has a type.
const (
	NFProtoInet = 1
	NFProtoIPv4 = 2
	NFProtoIPv6 = 10
)

// networks are the network protocols by nf_proto, etherNetworks what is in an
// Ethernet frame.
var (
	networks = []upper{
		{uint64(NFProtoIPv4), "ip"},
		{uint64(NFProtoIPv6), "ip6"},
	}
	etherNetworks = []upper{
		{EtherIP, "ip"},
		{etherARP, "arp"},
		{EtherIP6, "ip6"},
		{etherVLAN, "vlan"},
		{etherQinQ, "vlan"},
	}
)

// The link layer of tables that see packets of several protocols: inet tables
// know the network protocol by meta nfproto, netdev tables by meta protocol.
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

// headerVLAN is what comes behind the Ethernet header of a tagged frame.
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
