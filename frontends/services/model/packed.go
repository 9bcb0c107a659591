package model

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"net/netip"
	"slices"
	"sort"
	"strings"
)

// entry is an endpoint in packed form: address, port and flags in sort order. The first width bytes count;
// the rest is zero. A packed list is a sorted string of entries with the same width.
type entry [widthIPv6]byte

const (
	widthIPv4 = 4 + 2 + 1
	widthIPv6 = 16 + 2 + 1
)

var widths = [NumFamilies]int{IPv4: widthIPv4, IPv6: widthIPv6}

func pack(a netip.AddrPort, flags byte, width int) (e entry) {
	if width == widthIPv4 {
		b := a.Addr().As4()
		copy(e[:], b[:])
	} else {
		b := a.Addr().As16()
		copy(e[:], b[:])
	}
	binary.BigEndian.PutUint16(e[width-3:], a.Port())
	e[width-1] = flags
	return e
}

func unpack(s string) netip.AddrPort {
	w := len(s)
	port := uint16(s[w-3])<<8 | uint16(s[w-2])
	if w == widthIPv4 {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{s[0], s[1], s[2], s[3]}), port)
	}
	var b [16]byte
	copy(b[:], s)
	return netip.AddrPortFrom(netip.AddrFrom16(b), port)
}

// compareEntries compares an IPv4 entry by its first 8 bytes alone.
func compareEntries(a, b entry) int {
	if x, y := binary.BigEndian.Uint64(a[:]), binary.BigEndian.Uint64(b[:]); x != y {
		return cmp.Compare(x, y)
	}
	return bytes.Compare(a[8:], b[8:])
}

func packSorted(all []entry, width int) string {
	slices.SortFunc(all, compareEntries)
	var b strings.Builder
	b.Grow(len(all) * width)
	for i := range all {
		b.Write(all[i][:width])
	}
	return b.String()
}

// before returns the length in bytes of the entries less than one.
func before(list, one string, width int) int {
	return width * sort.Search(len(list)/width, func(i int) bool { return list[i*width:(i+1)*width] >= one })
}

// replaceEntries sorts was and now.
func replaceEntries(list string, was, now []entry, width int) string {
	slices.SortFunc(was, compareEntries)
	slices.SortFunc(now, compareEntries)
	var b strings.Builder
	b.Grow(len(list) + max(0, len(now)-len(was))*width)
	for len(was)+len(now) > 0 {
		order := len(now) - len(was) // if one is empty
		if len(was) > 0 && len(now) > 0 {
			order = compareEntries(was[0], now[0])
		}
		switch {
		case order == 0:
			was, now = was[1:], now[1:]
		case order < 0:
			e := string(was[0][:width])
			at := before(list, e, width)
			b.WriteString(list[:at])
			list, was = strings.TrimPrefix(list[at:], e), was[1:]
		default:
			at := before(list, string(now[0][:width]), width)
			b.WriteString(list[:at])
			b.Write(now[0][:width])
			list, now = list[at:], now[1:]
		}
	}
	b.WriteString(list)
	return b.String()
}

// diffPacked calls f in order, for entries with different flags first with the entry of was.
func diffPacked(was, now string, width int, f func(entry string, came bool)) {
	const block = 64
	for {
		// Most entries of two versions of a list are equal.
		for n := block * width; len(was) >= n && len(now) >= n && was[:n] == now[:n]; {
			was, now = was[n:], now[n:]
		}
		switch key := width - 1; {
		case was == now:
			return
		case now == "" || was != "" && was[:width] != now[:width] && was[:key] <= now[:key]:
			f(was[:width], false)
			was = was[width:]
		case was == "" || was[:width] != now[:width]:
			f(now[:width], true)
			now = now[width:]
		default:
			was, now = was[width:], now[width:]
		}
	}
}

// Repeats may differ in flags.
func withoutRepeats(list string, width int) string {
	for i := width; i < len(list); i += width {
		// Most neighbours differ in the last byte of the address.
		if list[i-4] != list[i+width-4] || list[i-width:i-1] != list[i:i+width-1] {
			continue
		}
		b := []byte(list[:i])
		for rest := list[i:]; rest != ""; rest = rest[width:] {
			if string(b[len(b)-width:len(b)-1]) != rest[:width-1] {
				b = append(b, rest[:width]...)
			}
		}
		return string(b)
	}
	return list
}
