package compile

import (
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/datatype"
)

// ctKey is a key of the ct expression.
type ctKey struct {
	// name is the key's name, with "ip " or "ip6 " in front where the rule
	// says which protocol it means.
	name string
	key  uint32
	// dump is libnftnl's name where it is another.
	dump  string
	typ   *datatype.Type
	bits  uint32
	order datatype.Order
	// direction says whether "original" or "reply" goes with the key.
	direction directionUse
	// protocol is the network protocol that the key belongs to, if any.
	protocol *header
	// settable keys can be assigned to; unreadable ones cannot be matched.
	settable, unreadable bool
}

// directionUse says whether a ct key takes a direction.
type directionUse uint8

const (
	directionNever directionUse = iota
	directionMay
	directionMust
)

// The ct keys that golang.org/x/sys has no names for (enum nft_ct_keys).
const (
	ctSrcIP  = 0x13
	ctDstIP  = 0x14
	ctSrcIP6 = 0x15
	ctDstIP6 = 0x16
	ctID     = 0x17
)

// ctSelectors are the keys of this vocabulary. The types of saddr, daddr, proto-src
// and proto-dst depend on what the rule has matched before.
var ctSelectors = [...]ctKey{
	{name: "state", key: unix.NFT_CT_STATE, typ: datatype.CTState, bits: 32, order: datatype.HostEndian},
	{name: "direction", key: unix.NFT_CT_DIRECTION, typ: datatype.CTDir, bits: 8, order: datatype.HostEndian},
	{name: "status", key: unix.NFT_CT_STATUS, typ: datatype.CTStatus, bits: 32, order: datatype.HostEndian},
	{name: "mark", key: unix.NFT_CT_MARK, typ: datatype.Mark, bits: 32, order: datatype.HostEndian, settable: true},
	{name: "expiration", key: unix.NFT_CT_EXPIRATION, typ: datatype.Time, bits: 32, order: datatype.HostEndian},
	{name: "l3proto", key: unix.NFT_CT_L3PROTOCOL, dump: "l3protocol", typ: datatype.NFProto, bits: 8, order: datatype.HostEndian, direction: directionMay},
	{name: "protocol", key: unix.NFT_CT_PROTOCOL, typ: datatype.InetProto, bits: 8, order: datatype.BigEndian, direction: directionMay},
	{name: "saddr", key: unix.NFT_CT_SRC, dump: "src", order: datatype.BigEndian, direction: directionMust},
	{name: "daddr", key: unix.NFT_CT_DST, dump: "dst", order: datatype.BigEndian, direction: directionMust},
	{name: "proto-src", key: unix.NFT_CT_PROTO_SRC, dump: "proto_src", bits: 16, order: datatype.BigEndian, direction: directionMust},
	{name: "proto-dst", key: unix.NFT_CT_PROTO_DST, dump: "proto_dst", bits: 16, order: datatype.BigEndian, direction: directionMust},
	{name: "helper", key: unix.NFT_CT_HELPER, typ: datatype.String, bits: 128, order: datatype.HostEndian},
	{name: "label", key: unix.NFT_CT_LABELS, typ: datatype.CTLabel, bits: 128, order: datatype.HostEndian, settable: true},
	{name: "bytes", key: unix.NFT_CT_BYTES, typ: datatype.Integer, bits: 64, order: datatype.HostEndian, direction: directionMay},
	{name: "packets", key: unix.NFT_CT_PKTS, typ: datatype.Integer, bits: 64, order: datatype.HostEndian, direction: directionMay},
	{name: "avgpkt", key: unix.NFT_CT_AVGPKT, typ: datatype.Integer, bits: 64, order: datatype.HostEndian, direction: directionMay},
	{name: "zone", key: unix.NFT_CT_ZONE, typ: datatype.Integer, bits: 16, order: datatype.HostEndian, direction: directionMay, settable: true},
	{name: "event", key: unix.NFT_CT_EVENTMASK, typ: datatype.CTEvent, bits: 32, order: datatype.HostEndian, settable: true, unreadable: true},
	{name: "secmark", key: unix.NFT_CT_SECMARK, typ: datatype.Integer, bits: 32, order: datatype.HostEndian, settable: true},
	{name: "id", key: ctID, dump: "unknown", typ: datatype.Integer, bits: 32, order: datatype.BigEndian},
	{name: "ip saddr", key: ctSrcIP, dump: "src_ip", typ: datatype.IPv4Addr, bits: 32, order: datatype.BigEndian, direction: directionMust, protocol: &headerIP},
	{name: "ip daddr", key: ctDstIP, dump: "dst_ip", typ: datatype.IPv4Addr, bits: 32, order: datatype.BigEndian, direction: directionMust, protocol: &headerIP},
	{name: "ip6 saddr", key: ctSrcIP6, dump: "src_ip6", typ: datatype.IPv6Addr, bits: 128, order: datatype.BigEndian, direction: directionMust, protocol: &headerIP6},
	{name: "ip6 daddr", key: ctDstIP6, dump: "dst_ip6", typ: datatype.IPv6Addr, bits: 128, order: datatype.BigEndian, direction: directionMust, protocol: &headerIP6},
}

// ctByName returns a ct key, or nil.
func ctByName(l3, name string) *ctKey {
	for i := range ctSelectors {
		k := ctSelectors[i].name
		if l3 == "" && k == name || l3 != "" && len(k) == len(l3)+1+len(name) && k[:len(l3)] == l3 && k[len(l3)] == ' ' && k[len(l3)+1:] == name {
			return &ctSelectors[i]
		}
	}
	return nil
}

// ctDumpName returns libnftnl's name of a kernel key.
func ctDumpName(key uint32) string {
	for i := range ctSelectors {
		if k := &ctSelectors[i]; k.key == key {
			if k.dump != "" {
				return k.dump
			}
			return k.name
		}
	}
	return "unknown"
}

// directionOf returns the number of a direction's word, noDirection without
// one.
func directionOf(word string) int {
	switch word {
	case "original":
		return directionOriginal
	case "reply":
		return directionReply
	default:
		return noDirection
	}
}

// The directions of enum ip_conntrack_dir; noDirection is none.
const (
	directionOriginal = 0
	directionReply    = 1
	noDirection       = -1
)
