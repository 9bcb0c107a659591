package ipvs

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/weft-proxy/weft/cmd/weft/sockdiag"
)

// host changes the network namespace.
type host interface {
	// connections counts open connections, without UDP, by virtual server.
	connections(ctx context.Context) (map[end]int, error)
	deleteServer(Server) error
	// deleteFlows deletes untranslated conntrack entries with an end that f selects.
	deleteFlows(ctx context.Context, f func(end) bool) error
	// sockets lists connections of processes of this node by their source.
	sockets(f func(netip.Addr) bool) ([]sockdiag.Socket, error)
	destroySocket(sockdiag.Socket) error
	deleteAddress(netip.Addr) error
	deleteDevice() error
	destroySet(name string) error
}

// Release removes virtual servers, addresses and the device if no connection needs them, and
// returns why the others wait; empty if none do. With cut no connection is waited for. Call it
// again after a second: the kernel ends a connection of a removed virtual server at a packet to the
// address. After an error the rest is still removed.
func (l *Left) Release(ctx context.Context, cut bool) (removed []string, waiting string, err error) {
	if len(l.Servers) > 0 {
		return l.releaseServers(ctx, cut)
	}
	if !l.device {
		return nil, "", nil
	}
	return l.releaseAddresses(ctx, cut)
}

func (l *Left) releaseServers(ctx context.Context, cut bool) (removed []string, waiting string, err error) {
	var open map[end]int
	if !cut {
		if open, err = l.host.connections(ctx); err != nil {
			return nil, "", err
		}
	}
	total, due := 0, make(map[end]bool)
	for _, s := range l.Servers {
		total += open[s.end]
		due[s.end] = open[s.end] == 0
	}
	forget := func() error { return l.host.deleteFlows(ctx, func(e end) bool { return due[e] }) }
	// Packets of UDP clients go to weft's rules from here on.
	errs := []error{forget()}
	n := 0
	for _, s := range l.Servers {
		if !due[s.end] {
			continue
		}
		if err := l.host.deleteServer(s); err != nil {
			errs = append(errs, fmt.Errorf("remove virtual server %s: %w", s.Name, err))
			continue
		}
		n++
	}
	// Answers on their way made entries again.
	errs = append(errs, forget())
	if n > 0 {
		removed = append(removed, fmt.Sprintf("%d virtual servers of IPVS", n))
	}
	err = errors.Join(errs...)
	if total > 0 {
		waiting = fmt.Sprintf("%d connections through IPVS go on", total)
	} else if err == nil {
		waiting = "the addresses of " + Device + " go next"
	}
	return removed, waiting, err
}

func (l *Left) releaseAddresses(ctx context.Context, cut bool) (removed []string, waiting string, err error) {
	going := make(map[netip.Addr]bool, len(l.Addresses))
	for _, a := range l.Addresses {
		going[a] = true
	}
	sockets, err := l.host.sockets(func(a netip.Addr) bool { return going[a] })
	if err != nil {
		return nil, "", err
	}
	var errs []error
	for _, s := range sockets {
		if !cut {
			going[s.Local.Addr()] = false
		} else if err := l.host.destroySocket(s); err != nil {
			errs = append(errs, fmt.Errorf("end the connection from %s to %s, whose address goes: %w", s.Local, s.Remote, err))
		}
	}
	errs = append(errs, l.host.deleteFlows(ctx, func(e end) bool { return going[e.addr] }))
	n := 0
	for _, a := range l.Addresses {
		if !going[a] {
			continue
		}
		if err := l.host.deleteAddress(a); err != nil {
			errs = append(errs, fmt.Errorf("remove address %s of %s: %w", a, Device, err))
			continue
		}
		n++
	}
	if n > 0 {
		removed = append(removed, fmt.Sprintf("%d addresses of %s", n, Device))
	}
	err = errors.Join(errs...)
	if err == nil && len(sockets) > 0 && !cut {
		return removed, fmt.Sprintf("%d connections of processes of this node have a source on %s", len(sockets), Device), nil
	}
	if err != nil || l.shared {
		return removed, "", err
	}
	if err := l.host.deleteDevice(); err != nil {
		return removed, "", fmt.Errorf("remove device %s: %w", Device, err)
	}
	return append(removed, "device "+Device), "", nil
}

// DestroySets removes the sets. It returns an error for each that a rule still uses.
func (l *Left) DestroySets() (removed []string, err error) {
	n := 0
	var errs []error
	for _, name := range l.Sets {
		if err := l.host.destroySet(name); err != nil {
			errs = append(errs, fmt.Errorf("remove set %s of ipset: %w", name, err))
			continue
		}
		n++
	}
	if n > 0 {
		removed = append(removed, fmt.Sprintf("%d sets of ipset", n))
	}
	return removed, errors.Join(errs...)
}
