package network

import (
	"fmt"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	netutils "k8s.io/utils/net"
)

// Protocol is an IP protocol number.
type Protocol uint8

const (
	TCP  Protocol = 6
	UDP  Protocol = 17
	SCTP Protocol = 132
)

// String returns nft's name.
func (p Protocol) String() string {
	switch p {
	case TCP:
		return "tcp"
	case UDP:
		return "udp"
	case SCTP:
		return "sctp"
	default:
		return fmt.Sprintf("protocol(%d)", uint8(p))
	}
}

// ParseProtocol returns a port's protocol; "" means TCP.
func ParseProtocol(p corev1.Protocol) (Protocol, error) {
	switch p {
	case corev1.ProtocolTCP, "":
		return TCP, nil
	case corev1.ProtocolUDP:
		return UDP, nil
	case corev1.ProtocolSCTP:
		return SCTP, nil
	default:
		return 0, fmt.Errorf("unknown protocol %q: want TCP, UDP or SCTP", p)
	}
}

// ParsePort validates a port number.
func ParsePort(n int32) (uint16, error) {
	if n < 1 || n > 65535 {
		return 0, fmt.Errorf("port %d is not in 1 to 65535", n)
	}
	return uint16(n), nil
}

// ParseAddr accepts surrounding space and the decimal leading zeros of old objects, and unmaps IPv4 in IPv6.
func ParseAddr(s string) (netip.Addr, error) {
	a, err := netip.ParseAddr(s)
	if err != nil {
		var ok bool
		if a, ok = netip.AddrFromSlice(netutils.ParseIPSloppy(strings.TrimSpace(s))); !ok {
			return netip.Addr{}, fmt.Errorf("parse address %q: want an IPv4 or IPv6 address", s)
		}
	}
	if a.Zone() != "" {
		return netip.Addr{}, fmt.Errorf("parse address %q: an address with a zone cannot be used", s)
	}
	return a.Unmap(), nil
}

// ParsePrefix parses a prefix with the tolerance of ParseAddr and clears the host bits.
func ParsePrefix(s string) (netip.Prefix, error) {
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
