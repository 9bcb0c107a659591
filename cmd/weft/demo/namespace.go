package demo

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"runtime"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// namespace is a network namespace: a node, a pod or the client. It lives as
// long as its handle, a socket or a process in it.
type namespace struct {
	name   string
	handle netns.NsHandle
	nl     *netlink.Handle
}

// newNamespace makes a namespace with loopback up.
func newNamespace(name string) (*namespace, error) {
	ns := &namespace{name: name, handle: netns.None()}
	err := onThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return err
		}
		var err error
		ns.handle, err = netns.GetFromPath("/proc/thread-self/ns/net")
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("make network namespace %s: %w", name, err)
	}
	if ns.nl, err = netlink.NewHandleAt(ns.handle, unix.NETLINK_ROUTE); err != nil {
		return nil, errors.Join(fmt.Errorf("open route socket in %s: %w", name, err), ns.close())
	}
	// Without this an address of IPv6 can't be used for a second.
	noDAD := map[string]string{"ipv6/conf/all/accept_dad": "0", "ipv6/conf/default/accept_dad": "0"}
	if err := errors.Join(ns.up("lo"), ns.sysctl(noDAD)); err != nil {
		return nil, errors.Join(err, ns.close())
	}
	return ns, nil
}

func (ns *namespace) close() error {
	if ns.nl != nil {
		ns.nl.Close()
	}
	return ns.handle.Close()
}

// do runs f on a thread that is in the namespace. Sockets and processes that
// f makes belong to the namespace; goroutines that it starts do not.
func (ns *namespace) do(f func() error) error {
	return onThread(func() error {
		if err := unix.Setns(int(ns.handle), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("enter network namespace %s: %w", ns.name, err)
		}
		return f()
	})
}

// onThread runs f on a thread of its own, which ends with f: it may be left in
// any namespace.
func onThread(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		done <- f()
	}()
	return <-done
}

// sysctl writes settings, given as paths below /proc/sys/net. A setting of IPv6
// is left out on a kernel without IPv6.
func (ns *namespace) sysctl(settings map[string]string) error {
	return ns.do(func() error {
		var errs []error
		for path, value := range settings {
			err := os.WriteFile("/proc/sys/net/"+path, []byte(value), 0)
			if err != nil && !(errors.Is(err, fs.ErrNotExist) && !hasIPv6()) {
				errs = append(errs, fmt.Errorf("set net/%s in %s: %w", path, ns.name, err))
			}
		}
		return errors.Join(errs...)
	})
}

// hasIPv6 reports whether the kernel has IPv6 and it is not turned off.
func hasIPv6() bool {
	off, err := os.ReadFile("/proc/sys/net/ipv6/conf/all/disable_ipv6")
	return err == nil && len(off) > 0 && off[0] == '0'
}

// up sets a link up.
func (ns *namespace) up(link string) error {
	l, err := ns.nl.LinkByName(link)
	if err != nil {
		return fmt.Errorf("find link %s in %s: %w", link, ns.name, err)
	}
	if err := ns.nl.LinkSetUp(l); err != nil {
		return fmt.Errorf("set link %s in %s up: %w", link, ns.name, err)
	}
	return nil
}

// end is one end of a veth pair.
type end struct {
	ns    *namespace
	link  string
	addrs []netip.Prefix
}

// join makes a veth pair, with its addresses usable at once.
func join(a, b end) error {
	pair := &netlink.Veth{
		LinkAttrs:     netlink.LinkAttrs{Name: a.link},
		PeerName:      b.link,
		PeerNamespace: netlink.NsFd(int(b.ns.handle)),
	}
	if err := a.ns.nl.LinkAdd(pair); err != nil {
		return fmt.Errorf("join %s and %s: %w", a.ns.name, b.ns.name, err)
	}
	for _, e := range []end{a, b} {
		if err := e.configure(); err != nil {
			return err
		}
	}
	return nil
}

func (e end) configure() error {
	link, err := e.ns.nl.LinkByName(e.link)
	if err != nil {
		return fmt.Errorf("find link %s in %s: %w", e.link, e.ns.name, err)
	}
	for _, prefix := range e.addrs {
		addr := &netlink.Addr{IPNet: ipNet(prefix)}
		if prefix.Addr().Is6() {
			addr.Flags = unix.IFA_F_NODAD
		}
		if err := e.ns.nl.AddrAdd(link, addr); err != nil {
			return fmt.Errorf("add address %s to %s in %s: %w", prefix, e.link, e.ns.name, err)
		}
	}
	return e.ns.up(e.link)
}

// route sends a prefix over a link, through a gateway where that is valid. The
// gateway need not be in a prefix of the link.
func (ns *namespace) route(dst netip.Prefix, link string, gateway netip.Addr) error {
	l, err := ns.nl.LinkByName(link)
	if err != nil {
		return fmt.Errorf("find link %s in %s: %w", link, ns.name, err)
	}
	r := &netlink.Route{Dst: ipNet(dst), LinkIndex: l.Attrs().Index}
	if gateway.IsValid() {
		r.Gw = gateway.AsSlice()
		r.SetFlag(netlink.FLAG_ONLINK)
	} else if dst.Addr().Is4() {
		r.Scope = netlink.SCOPE_LINK
	}
	if err := ns.nl.RouteAdd(r); err != nil {
		return fmt.Errorf("add route to %s in %s: %w", dst, ns.name, err)
	}
	return nil
}

// addresses returns the namespace's own addresses.
func (ns *namespace) addresses() (map[netip.Addr]bool, error) {
	list, err := ns.nl.AddrList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return nil, fmt.Errorf("list addresses of %s: %w", ns.name, err)
	}
	out := make(map[netip.Addr]bool, len(list))
	for _, a := range list {
		if addr, ok := netip.AddrFromSlice(a.IP); ok {
			out[addr.Unmap()] = true
		}
	}
	return out, nil
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
