package kubeproxy

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	netutils "k8s.io/utils/net"
)

// parseAddr parses an address as kube-proxy does: it accepts leading zeros.
func parseAddr(s string) (netip.Addr, error) {
	a, ok := netip.AddrFromSlice(netutils.ParseIPSloppy(strings.TrimSpace(s)))
	if !ok {
		return netip.Addr{}, fmt.Errorf("parse address %q: want one such as 192.0.2.1 or 2001:db8::1", s)
	}
	return a.Unmap(), nil
}

// parsePrefix parses a CIDR as kube-proxy does.
func parsePrefix(s string) (netip.Prefix, error) {
	_, n, err := netutils.ParseCIDRSloppy(strings.TrimSpace(s))
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("parse cidr: %w", err)
	}
	a, _ := netip.AddrFromSlice(n.IP)
	bits, _ := n.Mask.Size()
	return netip.PrefixFrom(a.Unmap(), bits), nil
}

// withPort adds a port to an address that has none. It returns anything else
// unchanged, for the validation to judge.
func withPort(address string, port int) string {
	if a, err := parseAddr(address); err == nil {
		return net.JoinHostPort(a.String(), strconv.Itoa(port))
	}
	return address
}

// checkAddrPort returns an error unless s is an address and a port.
func checkAddrPort(address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("split address: %w", err)
	}
	if _, err := parseAddr(host); err != nil {
		return err
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return fmt.Errorf("parse port %q: want 1 to 65535", port)
	}
	return nil
}
