package object

import (
	"encoding/binary"
	"time"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/attr"
	"github.com/weft-proxy/weft/nft/syntax"
)

// Attributes of a ct expectation (enum nft_ct_expectation_attributes).
const (
	nftaCTExpectL3Proto = 1
	nftaCTExpectL4Proto = 2
	nftaCTExpectDPort   = 3
	nftaCTExpectTimeout = 4
	nftaCTExpectSize    = 5
)

func encodeExpectation(family nft.Family, body syntax.ObjectBody) ([]byte, error) {
	o := body.(*syntax.ExpectationBody)
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
	b = attr.AppendUint8(b, nftaCTExpectL4Proto, protocolNumber(o.Protocol))
	b = attr.AppendUint16BE(b, nftaCTExpectDPort, o.DPort)
	// The one number of nf_tables in the machine's byte order.
	b = attr.AppendUint32NE(b, nftaCTExpectTimeout, uint32(o.Timeout.Milliseconds()))
	return attr.AppendUint8(b, nftaCTExpectSize, o.Size), nil
}

func decodeExpectation(family nft.Family, a attributes) (syntax.ObjectBody, error) {
	o := &syntax.ExpectationBody{
		Protocol: a.protocol(nftaCTExpectL4Proto), DPort: uint16(a.number(nftaCTExpectDPort)), Size: uint8(a.number(nftaCTExpectSize)),
		L3Proto: a.l3proto(nftaCTExpectL3Proto, family),
	}
	if v := a.byType[nftaCTExpectTimeout]; len(v) == 4 {
		o.Timeout = time.Duration(binary.NativeEndian.Uint32(v)) * time.Millisecond
	}
	return o, nil
}
