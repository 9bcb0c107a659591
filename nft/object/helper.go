package object

import (
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/attr"
	"github.com/weft-proxy/weft/nft/syntax"
)

// Attributes of a ct helper (enum nft_ct_helper_attributes).
const (
	nftaCTHelperName    = 1
	nftaCTHelperL3Proto = 2
	nftaCTHelperL4Proto = 3
)

func encodeHelper(family nft.Family, body syntax.ObjectBody) ([]byte, error) {
	o := body.(*syntax.HelperBody)
	switch {
	case o.Type == "":
		return nil, syntax.ErrorAt(start, `a ct helper has a type and a protocol: write them such as type "ftp" protocol tcp`)
	case o.L3Proto == "arp" || o.L3Proto == "" && family == nft.FamilyARP:
		return nil, syntax.ErrorAt(start, "a ct helper is not possible for family arp")
	}
	b := attr.AppendBytes(nil, nftaCTHelperName, o.Type)
	b, err := appendL3Proto(b, nftaCTHelperL3Proto, o.L3Proto)
	if err != nil {
		return nil, err
	}
	return attr.AppendUint8(b, nftaCTHelperL4Proto, protocolNumber(o.Protocol)), nil
}

func decodeHelper(family nft.Family, a attributes) (syntax.ObjectBody, error) {
	o := &syntax.HelperBody{
		Type: a.text(nftaCTHelperName), Protocol: a.protocol(nftaCTHelperL4Proto), L3Proto: a.l3proto(nftaCTHelperL3Proto, family),
	}
	if o.L3Proto == "bridge" || o.L3Proto == "netdev" {
		// The kernel treats a helper for these families as one for both versions
		// of IP.
		o.L3Proto = "inet"
	}
	return o, nil
}

// alignHelpers makes a helper for inet equal to one for the family in which the
// kernel has found the helper.
func alignHelpers(a, b syntax.ObjectBody) {
	x, y := a.(*syntax.HelperBody), b.(*syntax.HelperBody)
	if x.L3Proto == "inet" || y.L3Proto == "inet" {
		x.L3Proto, y.L3Proto = "", ""
	}
}

// protocolNumber returns the number of the transport protocol of an object of
// conntrack.
func protocolNumber(name string) uint8 {
	if name == "udp" {
		return unix.IPPROTO_UDP
	}
	return unix.IPPROTO_TCP
}

// protocol is the inverse of protocolNumber.
func (a *attributes) protocol(typ uint16) string {
	if a.number(typ) == unix.IPPROTO_UDP {
		return "udp"
	}
	return "tcp"
}

// appendL3Proto appends a family if one is given.
func appendL3Proto(b []byte, typ uint16, l3proto string) ([]byte, error) {
	if l3proto == "" {
		return b, nil
	}
	family, err := nft.ParseFamily(l3proto)
	if err != nil {
		return nil, syntax.ErrorAt(start, "l3proto: %s", err)
	}
	return attr.AppendUint16BE(b, typ, uint16(family)), nil
}

// l3proto returns the family that the object is for: that of the table if none is
// given.
func (a *attributes) l3proto(typ uint16, table nft.Family) string {
	if len(a.byType[typ]) == 2 {
		table = nft.Family(a.number(typ))
	}
	return table.String()
}
