package compile

import "github.com/weft-proxy/weft/nft/datatype"

// Ethernet types (linux/if_ether.h).
const (
	etherIP     = 0x0800
	etherARP    = 0x0806
	etherVLAN   = 0x8100
	etherIP6    = 0x86dd
	etherQinQ   = 0x88a8
	arphrdEther = 1
)

// nf_proto values (linux/netfilter.h).
const (
	nfprotoInet = 1
	nfprotoIPv4 = 2
	nfprotoIPv6 = 10
)

// networks are the network protocols by nf_proto, etherNetworks what is in an
// Ethernet frame.
var (
	networks = []upper{
		{uint64(nfprotoIPv4), "ip"},
		{uint64(nfprotoIPv6), "ip6"},
	}
	etherNetworks = []upper{
		{etherIP, "ip"},
		{etherARP, "arp"},
		{etherIP6, "ip6"},
		{etherVLAN, "vlan"},
		{etherQinQ, "vlan"},
	}
)

// The link layer of tables that see packets of several protocols: inet tables
// know the network protocol by meta nfproto, netdev tables by meta protocol.
var (
	headerInet = header{name: "inet", layer: layerLink, key: "nfproto", uppers: networks}
	headerLink = header{name: "netdev", layer: layerLink, key: "protocol", uppers: etherNetworks}
)

var headerEther = header{
	name: "ether", layer: layerLink, uppers: etherNetworks, length: 14 * 8,
	fields: []field{
		{name: "daddr", typ: datatype.EtherAddr, offset: 0, bits: 48},
		{name: "saddr", typ: datatype.EtherAddr, offset: 48, bits: 48},
		{name: "type", typ: datatype.EtherType, offset: 96, bits: 16, protocol: true},
	},
}

// headerVLAN is what comes behind the Ethernet header of a tagged frame.
var headerVLAN = header{
	name: "vlan", layer: layerLink, uppers: etherNetworks, length: 4 * 8,
	fields: []field{
		{name: "pcp", typ: datatype.Integer, offset: 0, bits: 3},
		{name: "dei", typ: datatype.Integer, offset: 3, bits: 1},
		{name: "cfi", typ: datatype.Integer, offset: 3, bits: 1},
		{name: "id", typ: datatype.Integer, offset: 4, bits: 12},
		{name: "type", typ: datatype.EtherType, offset: 16, bits: 16, protocol: true},
	},
}
