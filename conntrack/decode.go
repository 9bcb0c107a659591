package conntrack

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// linux/netfilter/nfnetlink_conntrack.h
const (
	ctaTupleOrig     = 1
	ctaTupleReply    = 2
	ctaStatus        = 3
	ctaProtoInfo     = 4
	ctaCountersOrig  = 9
	ctaCountersReply = 10
	ctaID            = 12
	ctaZone          = 18
	ctaFilter        = 25

	ctaTupleIP    = 1
	ctaTupleProto = 2
	ctaTupleZone  = 3

	ctaIPv4Src = 1
	ctaIPv4Dst = 2
	ctaIPv6Src = 3
	ctaIPv6Dst = 4

	ctaProtoNum        = 1
	ctaProtoSrcPort    = 2
	ctaProtoDstPort    = 3
	ctaProtoICMPID     = 4
	ctaProtoICMPType   = 5
	ctaProtoICMPCode   = 6
	ctaProtoICMPv6ID   = 7
	ctaProtoICMPv6Type = 8
	ctaProtoICMPv6Code = 9

	ctaCountersBytes = 2

	ctaProtoInfoTCP      = 1
	ctaProtoInfoTCPState = 1

	ctaFilterOrigFlags  = 1
	ctaFilterReplyFlags = 2
)

// struct nfgenmsg
const nfgenmsgLen = 4

// eachAttr calls f with the kind, without flags, and the data of each attribute until f returns false.
// It returns false if f does, or if an attribute is malformed.
func eachAttr(b []byte, f func(kind uint16, data []byte) bool) bool {
	for len(b) > 0 {
		if len(b) < unix.SizeofNlAttr {
			return false
		}
		length := int(binary.NativeEndian.Uint16(b))
		if length < unix.SizeofNlAttr || length > len(b) {
			return false
		}
		kind := binary.NativeEndian.Uint16(b[2:]) &^ (unix.NLA_F_NESTED | unix.NLA_F_NET_BYTEORDER)
		if !f(kind, b[unix.SizeofNlAttr:length]) {
			return false
		}
		b = b[min((length+unix.NLA_ALIGNTO-1)&^(unix.NLA_ALIGNTO-1), len(b)):]
	}
	return true
}
