package model

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	netutils "k8s.io/utils/net"
)

// errSpecial means that an address cannot be a destination.
var errSpecial = errors.New("unspecified, loopback and multicast addresses cannot be used")

// parseAddr parses an address in a Kubernetes object. Old objects may have decimal
// leading zeros, and space around the address (rule 14).
func parseAddr(s string) (netip.Addr, error) {
	a, err := netip.ParseAddr(s)
	if err != nil {
		ip := netutils.ParseIPSloppy(strings.TrimSpace(s))
		var ok bool
		if a, ok = netip.AddrFromSlice(ip); !ok {
			return netip.Addr{}, fmt.Errorf("parse address %q: want an IPv4 or IPv6 address", s)
		}
	}
	if a.Zone() != "" {
		return netip.Addr{}, fmt.Errorf("parse address %q: an address with a zone cannot be used", s)
	}
	a = a.Unmap()
	if a.IsUnspecified() || a.IsLoopback() || a.IsMulticast() {
		return netip.Addr{}, fmt.Errorf("parse address %q: %w", s, errSpecial)
	}
	return a, nil
}

// parsePrefix parses a prefix with the same tolerance, and clears the bits beyond its
// length.
func parsePrefix(s string) (netip.Prefix, error) {
	_, n, err := netutils.ParseCIDRSloppy(strings.TrimSpace(s))
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("parse prefix %q: want an address, a slash and a number of bits", s)
	}
	a, _ := netip.AddrFromSlice(n.IP)
	ones, bits := n.Mask.Size()
	if a.Is4In6() && bits == 128 && ones >= 96 {
		a, ones = a.Unmap(), ones-96
	}
	return netip.PrefixFrom(a, ones), nil
}

// parsePrefixes returns the prefixes of each family, sorted, without duplicates. It adds
// the invalid ones to bad, and ignores blank ones.
func parsePrefixes(field string, in []string, bad *findings) (out Prefixes) {
	for i, text := range in {
		if strings.TrimSpace(text) == "" {
			continue
		}
		p, err := parsePrefix(text)
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

// sortPrefixes sorts in place and removes duplicates.
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

// parsePort validates a port number.
func parsePort(n int32) (uint16, error) {
	if n < 1 || n > 65535 {
		return 0, fmt.Errorf("port %d is not in 1 to 65535", n)
	}
	return uint16(n), nil
}

// index names an element of a list.
func index(field string, i int) string { return field + "[" + strconv.Itoa(i) + "]" }
