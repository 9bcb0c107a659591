package health

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"github.com/weft-proxy/weft/frontends/services/model"
)

// Network is what the servers need of the host.
type Network interface {
	// Listen is net.ListenConfig.Listen.
	Listen(ctx context.Context, network, address string) (net.Listener, error)
	// Addresses returns the addresses of the host's interfaces.
	Addresses() ([]netip.Addr, error)
}

// Host is the network namespace that the process is in.
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

// tcp is the network of a family in the words of package net. An IPv6 one takes no
// IPv4 connections, so the two never get in each other's way.
func tcp(f model.Family) string {
	if f == model.IPv4 {
		return "tcp4"
	}
	return "tcp6"
}

// unspecified stands for all addresses of a family.
func unspecified(f model.Family) netip.Addr {
	if f == model.IPv4 {
		return netip.IPv4Unspecified()
	}
	return netip.IPv6Unspecified()
}

// nodePorts are the prefixes of the addresses that answer on NodePorts in one
// family; all means every address of the host.
type nodePorts struct {
	all      bool
	prefixes []netip.Prefix
}

// nodePortsOf says it as the rules for NodePorts do: those of the configuration,
// where a family that is left out has none, or else the node's own addresses, or
// before there is one every address.
func nodePortsOf(configured []netip.Prefix, node *model.Node, f model.Family) nodePorts {
	var out nodePorts
	if len(configured) > 0 {
		for _, p := range configured {
			if model.FamilyOf(p.Addr()) != f || p.Addr().IsLoopback() {
				continue
			}
			if p.Bits() == 0 {
				return nodePorts{all: true}
			}
			out.prefixes = append(out.prefixes, p)
		}
		return out
	}
	if node.Addresses == ([model.Families]netip.Addr{}) {
		return nodePorts{all: true}
	}
	if a := node.Addresses[f]; a.IsValid() {
		out.prefixes = append(out.prefixes, netip.PrefixFrom(a, a.BitLen()))
	}
	return out
}

// match returns those of the host's addresses that the prefixes have. Link-local
// addresses of IPv6 are left out: without an interface they cannot be listened on.
func (n *nodePorts) match(host []netip.Addr) []netip.Addr {
	var out []netip.Addr
	for _, a := range host {
		if a.IsLoopback() || a.Is6() && a.IsLinkLocalUnicast() {
			continue
		}
		for _, p := range n.prefixes {
			if p.Contains(a) {
				out = append(out, a)
				break
			}
		}
	}
	return out
}
