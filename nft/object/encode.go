package object

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/syntax"
)

// Attributes of objects: nfnetlink's enums of linux/netfilter/nf_tables.h.
const (
	nftaCTHelperName    = 1
	nftaCTHelperL3Proto = 2
	nftaCTHelperL4Proto = 3

	nftaCTTimeoutL3Proto = 1
	nftaCTTimeoutL4Proto = 2
	nftaCTTimeoutData    = 3

	nftaCTExpectL3Proto = 1
	nftaCTExpectL4Proto = 2
	nftaCTExpectDPort   = 3
	nftaCTExpectTimeout = 4
	nftaCTExpectSize    = 5

	nftaSecMarkCtx = 1
)

// stateTimeout is a state of conntrack with nft's timeout in seconds; its attribute
// is its index, from 1 (CTA_TIMEOUT_TCP_SYN_SENT, CTA_TIMEOUT_UDP_UNREPLIED).
type stateTimeout struct {
	state   string
	seconds uint32
}

// The states of which nft sets timeouts.
var (
	tcpStates = []stateTimeout{
		{"syn_sent", 120}, {"syn_recv", 60}, {"established", 432000}, {"fin_wait", 120}, {"close_wait", 60}, {"last_ack", 30},
		{"time_wait", 120}, {"close", 10}, {"syn_sent2", 120}, {"retrans", 300}, {"unack", 300},
	}
	udpStates = []stateTimeout{{"unreplied", 30}, {"replied", 120}}
)

// start is the place of what is missing in an object.
var start = syntax.Pos{Line: 1, Column: 1}

// encodeObject returns the content of NFTA_OBJ_DATA, in nft's order.
func encodeObject(family nft.Family, body syntax.ObjectBody) ([]byte, error) {
	switch o := body.(type) {
	case *syntax.Counter:
		b := objectU64(nil, unix.NFTA_COUNTER_BYTES, o.Bytes)
		return objectU64(b, unix.NFTA_COUNTER_PACKETS, o.Packets), nil
	case *syntax.Quota:
		return encodeQuota(o)
	case *syntax.Limit:
		return encodeLimit(o)
	case *syntax.HelperBody:
		return encodeHelper(family, o)
	case *syntax.TimeoutBody:
		return encodeTimeout(o)
	case *syntax.ExpectationBody:
		return encodeExpectation(family, o)
	case *syntax.SecMarkBody:
		if o.Context == "" {
			return nil, syntax.ErrorAt(start, `a secmark has a security context: write it in double quotes, such as "system_u:object_r:ssh_server_packet_t:s0"`)
		}
		return expr.AppendAttr(nil, nftaSecMarkCtx, []byte(o.Context)), nil
	case *syntax.SynProxyBody:
		return encodeSynProxy(o), nil
	default:
		return nil, syntax.ErrorAt(start, "unknown object %T", body)
	}
}

func encodeQuota(o *syntax.Quota) ([]byte, error) {
	q, err := expr.NewQuota(o)
	if err != nil {
		return nil, err
	}
	return q.Attributes(), nil
}

func encodeLimit(o *syntax.Limit) ([]byte, error) {
	if o.Per == "" {
		return nil, syntax.ErrorAt(start, "a limit has a rate: write one such as rate 10/second")
	}
	l, err := expr.NewLimit(o)
	if err != nil {
		return nil, err
	}
	var flags uint32
	if l.Over {
		flags = unix.NFT_LIMIT_F_INV
	}
	b := objectU64(nil, unix.NFTA_LIMIT_RATE, l.Rate)
	b = objectU64(b, unix.NFTA_LIMIT_UNIT, uint64(l.Unit))
	b = expr.AppendU32(b, unix.NFTA_LIMIT_BURST, l.Burst)
	b = expr.AppendU32(b, unix.NFTA_LIMIT_TYPE, uint32(l.Type))
	return expr.AppendU32(b, unix.NFTA_LIMIT_FLAGS, flags), nil
}

// layer4 returns the number of a transport protocol that objects of conntrack are
// for.
func layer4(protocol string) uint8 {
	if protocol == "udp" {
		return unix.IPPROTO_UDP
	}
	return unix.IPPROTO_TCP
}

// appendL3Proto appends a family where it is given.
func appendL3Proto(b []byte, typ uint16, l3proto string) ([]byte, error) {
	if l3proto == "" {
		return b, nil
	}
	family, err := nft.ParseFamily(l3proto)
	if err != nil {
		return nil, syntax.ErrorAt(start, "l3proto: %s", err)
	}
	return objectU16(b, typ, uint16(family)), nil
}

func encodeHelper(family nft.Family, o *syntax.HelperBody) ([]byte, error) {
	switch {
	case o.Type == "":
		return nil, syntax.ErrorAt(start, `a ct helper has a type and a protocol: write them such as type "ftp" protocol tcp`)
	case o.L3Proto == "arp" || o.L3Proto == "" && family == nft.FamilyARP:
		return nil, syntax.ErrorAt(start, "a ct helper is not possible for family arp")
	}
	b := expr.AppendAttr(nil, nftaCTHelperName, []byte(o.Type))
	b, err := appendL3Proto(b, nftaCTHelperL3Proto, o.L3Proto)
	if err != nil {
		return nil, err
	}
	return expr.AppendAttr(b, nftaCTHelperL4Proto, []byte{layer4(o.Protocol)}), nil
}

func encodeTimeout(o *syntax.TimeoutBody) ([]byte, error) {
	if o.Protocol == "" {
		return nil, syntax.ErrorAt(start, "a ct timeout has a protocol: write protocol tcp or protocol udp")
	}
	known := statesOf(layer4(o.Protocol))
	seconds := make([]uint32, len(known))
	for i, s := range known {
		seconds[i] = s.seconds
	}
	for _, t := range o.Policy {
		found := false
		for i, s := range known {
			if s.state == t.State {
				seconds[i], found = t.Seconds, true
			}
		}
		if !found {
			return nil, syntax.ErrorAt(t.Pos, "unknown state %q of protocol %s: want %s", t.State, o.Protocol, joinStates(known))
		}
	}
	b, err := appendL3Proto(nil, nftaCTTimeoutL3Proto, o.L3Proto)
	if err != nil {
		return nil, err
	}
	b = expr.AppendAttr(b, nftaCTTimeoutL4Proto, []byte{layer4(o.Protocol)})
	b, at := expr.OpenAttr(b, expr.Nested|nftaCTTimeoutData)
	for i, s := range seconds {
		b = expr.AppendU32(b, uint16(i+1), s)
	}
	return expr.CloseAttr(b, at), nil
}

// statesOf returns the states of a transport protocol.
func statesOf(protocol uint8) []stateTimeout {
	if protocol == unix.IPPROTO_UDP {
		return udpStates
	}
	return tcpStates
}

func joinStates(states []stateTimeout) string {
	text := ""
	for i, s := range states {
		switch {
		case i == len(states)-1:
			text += " or "
		case i > 0:
			text += ", "
		}
		text += s.state
	}
	return text
}

func encodeExpectation(family nft.Family, o *syntax.ExpectationBody) ([]byte, error) {
	for _, a := range []struct {
		name    string
		missing bool
	}{{"protocol", o.Protocol == ""}, {"dport", o.DPort == 0}, {"timeout", o.Timeout == 0}, {"size", o.Size == 0}} {
		if a.missing {
			return nil, syntax.ErrorAt(start, "a ct expectation has protocol, dport, timeout and size, and none of them is 0: missing %s", a.name)
		}
	}
	l3proto := o.L3Proto
	if l3proto == "" {
		l3proto = family.String()
	}
	if l3proto != "ip" && l3proto != "ip6" {
		return nil, syntax.ErrorAt(start, "a ct expectation is not possible for family %s: add l3proto ip or l3proto ip6", l3proto)
	}
	b, err := appendL3Proto(nil, nftaCTExpectL3Proto, o.L3Proto)
	if err != nil {
		return nil, err
	}
	b = expr.AppendAttr(b, nftaCTExpectL4Proto, []byte{layer4(o.Protocol)})
	b = objectU16(b, nftaCTExpectDPort, o.DPort)
	// The one number of nf_tables in the machine's byte order.
	b = expr.AppendAttr(b, nftaCTExpectTimeout, binary.NativeEndian.AppendUint32(nil, uint32(o.Timeout.Milliseconds())))
	return expr.AppendAttr(b, nftaCTExpectSize, []byte{o.Size}), nil
}

func encodeSynProxy(o *syntax.SynProxyBody) []byte {
	var flags uint32
	if o.Given {
		flags = expr.SynproxyMSS | expr.SynproxyWScale
	}
	if o.Timestamp {
		flags |= expr.SynproxyTimestamp
	}
	if o.SackPerm {
		flags |= expr.SynproxySackPerm
	}
	b := objectU16(nil, expr.NftaSynProxyMSS, o.MSS)
	b = expr.AppendAttr(b, expr.NftaSynProxyWScale, []byte{o.WScale})
	return expr.AppendU32(b, expr.NftaSynProxyFlags, flags)
}

// objectU16 appends a 16-bit attribute in network byte order.
func objectU16(b []byte, typ, v uint16) []byte {
	return expr.AppendAttr(b, typ, binary.BigEndian.AppendUint16(nil, v))
}

// objectU64 appends a 64-bit attribute in network byte order.
func objectU64(b []byte, typ uint16, v uint64) []byte {
	return expr.AppendAttr(b, typ, binary.BigEndian.AppendUint64(nil, v))
}
