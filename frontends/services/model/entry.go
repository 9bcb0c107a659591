package model

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"net/netip"
)

// entry is an address, a port and a byte of marks, packed so that the order of
// the bytes is the order of addresses and ports, then that of marks. IPv4 fills
// the first narrow bytes: 4 of address, 2 of port, the marks. Anything else fills
// wide: the kind of address, 16 of address, 2 of port, the marks. The rest is zero.
type entry [wide]byte

// The widths of an entry in bytes.
const (
	narrow = 7
	wide   = 20
)

// The kinds of addresses in wide entries; 0 is none. Only lists of both families
// have IPv4 there.
const (
	kindIPv4 = 4
	kindIPv6 = 6
)

// widthOf returns how wide the entries of a family are.
func widthOf(f Family) int {
	if f == IPv4 {
		return narrow
	}
	return wide
}

// pack returns an entry of a width that the address fits in.
func pack(a netip.AddrPort, marks byte, width int) (e entry) {
	if width == narrow {
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

// unpack returns what an entry of either width has, without the marks.
func unpack(s string) netip.AddrPort {
	w := len(s)
	port := uint16(s[w-3])<<8 | uint16(s[w-2])
	if w == narrow {
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

// compare compares the first bytes, all of a narrow entry, as a number: a list is
// sorted several times as fast.
func (e *entry) compare(o *entry) int {
	if a, b := binary.BigEndian.Uint64(e[:]), binary.BigEndian.Uint64(o[:]); a != b {
		return cmp.Compare(a, b)
	}
	return bytes.Compare(e[8:], o[8:])
}

func compareEntries(a, b entry) int { return a.compare(&b) }

// firsts keeps the first of entries that differ in their marks alone. The list is
// sorted; it is changed in place.
func firsts(all []entry, width int) []entry {
	out := all[:0]
	for _, e := range all {
		if n := len(out); n == 0 || !bytes.Equal(out[n-1][:width-1], e[:width-1]) {
			out = append(out, e)
		}
	}
	return out
}
