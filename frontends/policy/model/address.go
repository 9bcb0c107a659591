package model

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/weft-proxy/weft/frontends/source/network"
)

var errSpecial = errors.New("unspecified, loopback, link-local and multicast addresses are not those of a pod")

func parsePodAddr(s string) (netip.Addr, error) {
	a, err := network.ParseAddr(s)
	if err == nil && (a.IsUnspecified() || a.IsLoopback() || a.IsMulticast() || a.IsLinkLocalUnicast()) {
		return netip.Addr{}, fmt.Errorf("parse address %q: %w", s, errSpecial)
	}
	return a, err
}

// parsePrefixes ignores blank prefixes and reports invalid ones in bad.
func parsePrefixes(field string, in []string, bad *findings) []netip.Prefix {
	var out []netip.Prefix
	for i, text := range in {
		if strings.TrimSpace(text) == "" {
			continue
		}
		p, err := network.ParsePrefix(text)
		if err != nil {
			bad.add(index(field, i), err)
			continue
		}
		out = append(out, p)
	}
	slices.SortFunc(out, netip.Prefix.Compare)
	return slices.Compact(out)
}

// RangeOf returns the addresses of a masked prefix.
func RangeOf(p netip.Prefix) Range {
	last := p.Addr().AsSlice()
	for i := range last {
		if host := 8*(i+1) - p.Bits(); host >= 8 {
			last[i] = 0xff
		} else if host > 0 {
			last[i] |= 1<<host - 1
		}
	}
	end, _ := netip.AddrFromSlice(last)
	return Range{First: p.Addr(), Last: end}
}

// subtract returns r without except, which it sorts in place.
func subtract(r Range, except []Range) []Range {
	var out []Range
	for _, e := range MergeRanges(except) {
		if e.First.BitLen() != r.First.BitLen() || e.Last.Less(r.First) {
			continue
		}
		if r.Last.Less(e.First) {
			break
		}
		if r.First.Less(e.First) {
			out = append(out, Range{r.First, e.First.Prev()})
		}
		next := e.Last.Next()
		if !next.IsValid() || r.Last.Less(next) {
			return out
		}
		r.First = next
	}
	return append(out, r)
}

// MergeRanges sorts ranges in place, and joins overlapping and adjacent ones.
func MergeRanges(in []Range) []Range {
	slices.SortFunc(in, func(a, b Range) int { return a.First.Compare(b.First) })
	out := in[:0]
	for _, r := range in {
		if n := len(out); n > 0 && out[n-1].First.BitLen() == r.First.BitLen() {
			last := &out[n-1]
			if next := last.Last.Next(); !next.IsValid() || !next.Less(r.First) {
				if last.Last.Less(r.Last) {
					last.Last = r.Last
				}
				continue
			}
		}
		out = append(out, r)
	}
	return out
}
