package model

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"net/netip"
	"slices"
)

// packedEndpoint is address, port and flags in sort order. A list of IPv4 uses widthIPv4: 4 bytes of
// address, 2 of port, 1 of flags. Other lists use widthIPv6: 1 byte of kind, 16 of address, 2 of port, 1
// of flags. The rest is zero.
type packedEndpoint [widthIPv6]byte

// Widths in bytes.
const (
	widthIPv4 = 7
	widthIPv6 = 20
)

// Kinds of addresses in widthIPv6; 0 means no address. Only lists of both families have IPv4 there.
const (
	kindIPv4 = 4
	kindIPv6 = 6
)

var widths = [NumFamilies]int{IPv4: widthIPv4, IPv6: widthIPv6}

// pack packs an endpoint whose address fits width.
func pack(a netip.AddrPort, marks byte, width int) (e packedEndpoint) {
	if width == widthIPv4 {
		b := a.Addr().As4()
		copy(e[:], b[:])
	} else if a.Addr().IsValid() {
		e[0] = kindIPv6
		if a.Addr().Is4() {
			e[0] = kindIPv4
		}
		b := a.Addr().As16()
		copy(e[1:], b[:])
	}
	binary.BigEndian.PutUint16(e[width-3:], a.Port())
	e[width-1] = marks
	return e
}

func unpack(s string) netip.AddrPort {
	w := len(s)
	port := uint16(s[w-3])<<8 | uint16(s[w-2])
	if w == widthIPv4 {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{s[0], s[1], s[2], s[3]}), port)
	}
	var b [16]byte
	copy(b[:], s[1:])
	switch s[0] {
	case kindIPv6:
		return netip.AddrPortFrom(netip.AddrFrom16(b), port)
	case kindIPv4:
		return netip.AddrPortFrom(netip.AddrFrom16(b).Unmap(), port)
	default:
		return netip.AddrPortFrom(netip.Addr{}, port)
	}
}

// compare first compares 8 bytes, all of widthIPv4, as a number. This makes sorting several times as
// fast.
func (e *packedEndpoint) compare(o *packedEndpoint) int {
	if a, b := binary.BigEndian.Uint64(e[:]), binary.BigEndian.Uint64(o[:]); a != b {
		return cmp.Compare(a, b)
	}
	return bytes.Compare(e[8:], o[8:])
}

func comparePacked(a, b packedEndpoint) int { return a.compare(&b) }

// withoutRepeats keeps the first of endpoints that differ only in flags. all is sorted and modified in
// place.
func withoutRepeats(all []packedEndpoint, width int) []packedEndpoint {
	return slices.CompactFunc(all, func(a, b packedEndpoint) bool { return bytes.Equal(a[:width-1], b[:width-1]) })
}
