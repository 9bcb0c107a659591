package conntrack

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// locals are as in "fib daddr type local": routes of type local, including the routes of interface
// addresses.
type locals struct {
	prefixes map[netip.Prefix]struct{}
	lengths  map[int]struct{}
}

func (l *locals) add(p netip.Prefix) {
	if l.prefixes == nil {
		l.prefixes, l.lengths = make(map[netip.Prefix]struct{}), make(map[int]struct{})
	}
	l.prefixes[p], l.lengths[p.Bits()] = struct{}{}, struct{}{}
}

func (l *locals) contains(addr netip.Addr) bool {
	for n := range l.lengths {
		if p, err := addr.Prefix(n); err == nil {
			if _, ok := l.prefixes[p]; ok {
				return true
			}
		}
	}
	return false
}

func (c *Conn) dialRoute() (err error) {
	if c.route, err = netlink.Dial(unix.NETLINK_ROUTE, nil); err != nil {
		return fmt.Errorf("open route socket: %w", err)
	}
	// before Linux 4.20 the kernel sends the routes of all tables
	_ = c.route.SetOption(netlink.GetStrictCheck, true)
	const groups = 1<<(unix.RTNLGRP_IPV4_ROUTE-1) | 1<<(unix.RTNLGRP_IPV6_ROUTE-1)
	if c.arrivals, err = netlink.Dial(unix.NETLINK_ROUTE, &netlink.Config{Groups: groups}); err != nil {
		return fmt.Errorf("subscribe to routes: %w", err)
	}
	return nil
}

func (c *Conn) listLocals() (all locals, err error) {
	for _, f := range families {
		if err = repeat(func() error { return c.listRoutes(f, &all) }); err != nil && !errors.Is(err, unix.EINTR) {
			return all, err
		}
	}
	return all, nil
}

// listRoutes returns EINTR if routes changed meanwhile.
func (c *Conn) listRoutes(f family, all *locals) error {
	header := make([]byte, unix.SizeofRtMsg)
	header[0], header[4], header[7] = byte(f), unix.RT_TABLE_LOCAL, unix.RTN_LOCAL
	msgs, err := c.route.Execute(netlink.Message{Header: netlink.Header{Type: unix.RTM_GETROUTE, Flags: netlink.Request | netlink.Dump}, Data: header})
	if errors.Is(err, unix.ENOENT) {
		// no route yet
		return nil
	}
	for _, m := range msgs {
		if p, ok := localRoute(m); ok {
			all.add(p)
		}
		if m.Header.Flags&netlink.DumpInterrupted != 0 {
			err = unix.EINTR
		}
	}
	return err
}

func localRoute(m netlink.Message) (p netip.Prefix, ok bool) {
	if m.Header.Type != unix.RTM_NEWROUTE || len(m.Data) < unix.SizeofRtMsg || m.Data[4] != unix.RT_TABLE_LOCAL || m.Data[7] != unix.RTN_LOCAL {
		return p, false
	}
	addr := netip.IPv4Unspecified()
	if family(m.Data[0]) == familyIPv6 {
		addr = netip.IPv6Unspecified()
	}
	if !eachAttr(m.Data[unix.SizeofRtMsg:], func(kind uint16, data []byte) bool {
		if kind == unix.RTA_DST {
			addr, _ = netip.AddrFromSlice(data)
		}
		return true
	}) {
		return p, false
	}
	p, err := addr.Prefix(int(m.Data[1]))
	return p, err == nil
}

// Watch calls added with each prefix that becomes local, until ctx ends. It may repeat local
// prefixes. The zero Prefix means lost events: any address may be new. Only one goroutine may use
// Watch.
func (c *Conn) Watch(ctx context.Context, added func(netip.Prefix)) error {
	defer context.AfterFunc(ctx, func() { _ = c.arrivals.SetReadDeadline(time.Unix(1, 0)) })()
	for {
		msgs, err := c.arrivals.Receive()
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, unix.ENOBUFS):
			added(netip.Prefix{})
		case err != nil:
			return fmt.Errorf("watch local addresses: %w", err)
		}
		for _, m := range msgs {
			if p, ok := localRoute(m); ok {
				added(p)
			}
		}
	}
}
