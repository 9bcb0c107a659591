package selector

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/datatype"
)

type directionUse uint8

const (
	DirectionNever directionUse = iota
	directionMay
	DirectionMust
)

// CTKeys are from nft 1.0.6. Addresses have no Type and 0 Bits: they depend on earlier matches.
var CTKeys = Keys{
	{Name: "state", Key: unix.NFT_CT_STATE, Type: datatype.CTState, Bits: 32, Order: datatype.HostEndian},
	{Name: "direction", Key: unix.NFT_CT_DIRECTION, Type: datatype.CTDir, Bits: 8, Order: datatype.HostEndian},
	{Name: "status", Key: unix.NFT_CT_STATUS, Type: datatype.CTStatus, Bits: 32, Order: datatype.HostEndian},
	{Name: "mark", Key: unix.NFT_CT_MARK, Type: datatype.Mark, Bits: 32, Order: datatype.HostEndian, Settable: true},
	{Name: "expiration", Key: unix.NFT_CT_EXPIRATION, Type: datatype.Time, Bits: 32, Order: datatype.HostEndian},
	{Name: "l3proto", Key: unix.NFT_CT_L3PROTOCOL, dump: "l3protocol", Type: datatype.NFProto, Bits: 8, Order: datatype.HostEndian, Direction: directionMay},
	{Name: "protocol", Key: unix.NFT_CT_PROTOCOL, Type: datatype.InetProto, Bits: 8, Order: datatype.BigEndian, Direction: directionMay},
	{Name: "saddr", Key: unix.NFT_CT_SRC, dump: "src", Order: datatype.BigEndian, Direction: DirectionMust},
	{Name: "daddr", Key: unix.NFT_CT_DST, dump: "dst", Order: datatype.BigEndian, Direction: DirectionMust},
	{Name: "proto-src", Key: unix.NFT_CT_PROTO_SRC, dump: "proto_src", Bits: 16, Order: datatype.BigEndian, Direction: DirectionMust},
	{Name: "proto-dst", Key: unix.NFT_CT_PROTO_DST, dump: "proto_dst", Bits: 16, Order: datatype.BigEndian, Direction: DirectionMust},
	{Name: "helper", Key: unix.NFT_CT_HELPER, Type: datatype.String, Bits: 128, Order: datatype.HostEndian},
	{Name: "label", Key: unix.NFT_CT_LABELS, Type: datatype.CTLabel, Bits: 128, Order: datatype.HostEndian, Settable: true},
	{Name: "bytes", Key: unix.NFT_CT_BYTES, Type: datatype.Integer, Bits: 64, Order: datatype.HostEndian, Direction: directionMay},
	{Name: "packets", Key: unix.NFT_CT_PKTS, Type: datatype.Integer, Bits: 64, Order: datatype.HostEndian, Direction: directionMay},
	{Name: "avgpkt", Key: unix.NFT_CT_AVGPKT, Type: datatype.Integer, Bits: 64, Order: datatype.HostEndian, Direction: directionMay},
	{Name: "zone", Key: unix.NFT_CT_ZONE, Type: datatype.Integer, Bits: 16, Order: datatype.HostEndian, Direction: directionMay, Settable: true},
	{Name: "event", Key: unix.NFT_CT_EVENTMASK, Type: datatype.CTEvent, Bits: 32, Order: datatype.HostEndian, Settable: true, Unreadable: true},
	{Name: "secmark", Key: unix.NFT_CT_SECMARK, Type: datatype.Integer, Bits: 32, Order: datatype.HostEndian, Settable: true},
	{Name: "id", Key: unix.NFT_CT_ID, dump: "unknown", Type: datatype.Integer, Bits: 32, Order: datatype.BigEndian},
	{Name: "ip saddr", Key: unix.NFT_CT_SRC_IP, dump: "src_ip", Type: datatype.IPv4Addr, Bits: 32, Order: datatype.BigEndian, Direction: DirectionMust, Protocol: &HeaderIP},
	{Name: "ip daddr", Key: unix.NFT_CT_DST_IP, dump: "dst_ip", Type: datatype.IPv4Addr, Bits: 32, Order: datatype.BigEndian, Direction: DirectionMust, Protocol: &HeaderIP},
	{Name: "ip6 saddr", Key: unix.NFT_CT_SRC_IP6, dump: "src_ip6", Type: datatype.IPv6Addr, Bits: 128, Order: datatype.BigEndian, Direction: DirectionMust, Protocol: &HeaderIP6},
	{Name: "ip6 daddr", Key: unix.NFT_CT_DST_IP6, dump: "dst_ip6", Type: datatype.IPv6Addr, Bits: 128, Order: datatype.BigEndian, Direction: DirectionMust, Protocol: &HeaderIP6},
}

// Direction is enum ip_conntrack_dir plus one.
type Direction uint8

// The directions.
const (
	NoDirection Direction = iota
	DirectionOriginal
	DirectionReply
)

var directions = [...]string{NoDirection: "", DirectionOriginal: "original", DirectionReply: "reply"}

// ParseDirection returns NoDirection for other words.
func ParseDirection(word string) Direction {
	return Direction(max(0, slices.Index(directions[:], word)))
}
