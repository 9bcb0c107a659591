package datatype

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

func appendIPv4(dst []byte, text string) ([]byte, error) {
	if strings.IndexByte(text, '.') < 0 {
		// as in inet_aton(3), a number is an address
		if n, err := strconv.ParseUint(text, 0, 32); err == nil {
			return binary.BigEndian.AppendUint32(dst, uint32(n)), nil
		}
	}
	addr, err := netip.ParseAddr(text)
	switch {
	case err != nil:
		return dst, fmt.Errorf("parse ipv4_addr: %q is not an IPv4 address such as 10.0.0.1", text)
	case addr.Is6():
		return dst, fmt.Errorf("parse ipv4_addr: %q is an IPv6 address", text)
	}
	a := addr.As4()
	return append(dst, a[:]...), nil
}

func appendIPv6(dst []byte, text string) ([]byte, error) {
	addr, err := netip.ParseAddr(text)
	switch {
	case err != nil || addr.Zone() != "":
		return dst, fmt.Errorf("parse ipv6_addr: %q is not an IPv6 address such as 2001:db8::1 (without a zone)", text)
	case addr.Is4():
		return dst, fmt.Errorf("parse ipv6_addr: %q is an IPv4 address", text)
	}
	a := addr.As16()
	return append(dst, a[:]...), nil
}

func formatIP(_ *Type, b []byte) string {
	addr, _ := netip.AddrFromSlice(b)
	return addr.String()
}

func appendEther(dst []byte, text string) ([]byte, error) {
	out, err := appendLinkLayer(dst, text)
	if err != nil || len(out)-len(dst) != 6 {
		return dst, fmt.Errorf("parse ether_addr: %q is not an Ethernet address such as 00:16:3e:00:00:01", text)
	}
	return out, nil
}

// MAX_ADDR_LEN of linux/netdevice.h
const maxLinkLayer = 32

func appendLinkLayer(dst []byte, text string) ([]byte, error) {
	out, n := dst, 0
	for part := range strings.SplitSeq(text, ":") {
		v, err := strconv.ParseUint(part, 16, 8)
		if n++; err != nil || len(part) > 2 || n > maxLinkLayer {
			return dst, fmt.Errorf("parse ll_addr: %q is not a link layer address such as 00:16:3e:00:00:01", text)
		}
		out = append(out, byte(v))
	}
	return out, nil
}

func formatEther(_ *Type, b []byte) string {
	return net.HardwareAddr(b).String()
}
