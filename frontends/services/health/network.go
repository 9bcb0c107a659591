package health

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/weft-proxy/weft/frontends/services/model"
)

// Network is the servers' view of the host.
type Network interface {
	Listen(ctx context.Context, network, address string) (net.Listener, error)
	// Addresses returns the host's interface addresses.
	Addresses() ([]netip.Addr, error)
}

// Host is the process's network namespace.
type Host struct{}

// Listen implements Network.
func (Host) Listen(ctx context.Context, network, address string) (net.Listener, error) {
	return new(net.ListenConfig).Listen(ctx, network, address)
}

// Addresses implements Network.
func (Host) Addresses() ([]netip.Addr, error) {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("list addresses of interfaces: %w", err)
	}
	var out []netip.Addr
	for _, a := range list {
		if n, ok := a.(*net.IPNet); ok {
			if addr, ok := netip.AddrFromSlice(n.IP); ok {
				out = append(out, addr.Unmap())
			}
		}
	}
	return out, nil
}

var unspecified = [model.NumFamilies]netip.Addr{netip.IPv4Unspecified(), netip.IPv6Unspecified()}

// matching omits IPv6 link-local addresses, because listening there requires an interface.
func matching(host []netip.Addr, prefixes []netip.Prefix) []netip.Addr {
	return slices.DeleteFunc(slices.Clone(host), func(a netip.Addr) bool {
		contains := func(p netip.Prefix) bool { return p.Contains(a) }
		return a.IsLoopback() || a.Is6() && a.IsLinkLocalUnicast() || !slices.ContainsFunc(prefixes, contains)
	})
}
