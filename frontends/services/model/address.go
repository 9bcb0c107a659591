package model

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-proxy/weft/frontends/source/network"
)

var errSpecial = errors.New("unspecified, loopback and multicast addresses cannot be used")

// parseAddr is network.ParseAddr for a destination (rule 14).
func parseAddr(s string) (netip.Addr, error) {
	a, err := network.ParseAddr(s)
	if err == nil && (a.IsUnspecified() || a.IsLoopback() || a.IsMulticast()) {
		return netip.Addr{}, fmt.Errorf("parse address %q: %w", s, errSpecial)
	}
	return a, err
}

// parsePrefixes returns the prefixes by family, sorted, without duplicates. It skips blanks.
func parsePrefixes(field string, in []string, bad *findings) (out Prefixes) {
	for i, text := range in {
		if strings.TrimSpace(text) == "" {
			continue
		}
		p, err := network.ParsePrefix(text)
		if err != nil {
			bad.add(index(field, i), err)
			continue
		}
		f := FamilyOf(p.Addr())
		out[f] = append(out[f], p)
	}
	for f := range out {
		out[f] = sortPrefixes(out[f])
	}
	return out
}

func sortPrefixes(in []netip.Prefix) []netip.Prefix {
	slices.SortFunc(in, netip.Prefix.Compare)
	return slices.Clip(slices.Compact(in))
}

func equalPrefixes(a, b *Prefixes) bool {
	for f := range a {
		if !slices.Equal(a[f], b[f]) {
			return false
		}
	}
	return true
}

func index(field string, i int) string { return field + "[" + strconv.Itoa(i) + "]" }
