package kubeproxy

import (
	"fmt"
	"net"
	"strconv"

	"github.com/weft-proxy/weft/frontends/source/network"
)

// withPort adds a port to an address that has none. It returns anything else
// unchanged, for the validation to judge.
func withPort(address string, port int) string {
	if a, err := network.ParseAddr(address); err == nil {
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
	if _, err := network.ParseAddr(host); err != nil {
		return err
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return fmt.Errorf("parse port %q: want 1 to 65535", port)
	}
	return nil
}
