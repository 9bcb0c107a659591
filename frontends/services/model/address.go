package model

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	netutils "k8s.io/utils/net"
)

// errSpecial is why an address can not be a destination.
var errSpecial = errors.New("unspecified, loopback and multicast addresses can not be used")

// parseAddr parses an address as Kubernetes objects have it: old ones may have
// leading zeros, which are decimal, and space around them (rule 14).
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
		return netip.Addr{}, fmt.Errorf("parse address %q: an address with a zone can not be used", s)
	}
	a = a.Unmap()
	if a.IsUnspecified() || a.IsLoopback() || a.IsMulticast() {
		return netip.Addr{}, fmt.Errorf("parse address %q: %w", s, errSpecial)
	}
	return a, nil
}

// parsePort checks a port number.
func parsePort(n int32) (uint16, error) {
	if n < 1 || n > 65535 {
		return 0, fmt.Errorf("port %d is not in 1 to 65535", n)
	}
	return uint16(n), nil
}

// index names a list's entry.
func index(field string, i int) string { return field + "[" + strconv.Itoa(i) + "]" }
