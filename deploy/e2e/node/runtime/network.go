package runtime

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// namespaces are open files, so that the namespaces stay.
type namespaces struct {
	uts, ipc *os.File
	// net is nil on the node's network.
	net *os.File
}

func (n *namespaces) files() []*os.File {
	all := []*os.File{n.uts, n.ipc}
	if n.net != nil {
		all = append(all, n.net)
	}
	return all
}

func (n *namespaces) close() {
	for _, f := range n.files() {
		f.Close()
	}
}

func newNamespaces(hostname string, ownNetwork bool, sysctls map[string]string) (n *namespaces, err error) {
	discard(func() { n, err = unshareNamespaces(hostname, ownNetwork, sysctls) })
	if err != nil {
		return nil, fmt.Errorf("make namespaces of pod: %w", err)
	}
	return n, nil
}

func unshareNamespaces(hostname string, ownNetwork bool, sysctls map[string]string) (*namespaces, error) {
	flags := unix.CLONE_NEWUTS | unix.CLONE_NEWIPC
	if ownNetwork {
		flags |= unix.CLONE_NEWNET
	}
	if err := unix.Unshare(flags); err != nil {
		return nil, err
	}
	if err := unix.Sethostname([]byte(hostname)); err != nil {
		return nil, err
	}
	var err error
	open := func(name string) *os.File {
		f, e := os.Open("/proc/thread-self/ns/" + name)
		err = errors.Join(err, e)
		return f
	}
	n := &namespaces{uts: open("uts"), ipc: open("ipc")}
	if ownNetwork {
		n.net = open("net")
		// As in container runtimes, programs of any user may bind every port.
		err = errors.Join(err, setSysctls(map[string]string{
			"net.ipv4.ip_unprivileged_port_start": "0", "net.ipv4.ping_group_range": "0 2147483647",
			"net.ipv6.conf.all.accept_dad": "0", "net.ipv6.conf.default.accept_dad": "0",
		}))
	}
	return n, errors.Join(err, setSysctls(sysctls))
}

func setSysctls(values map[string]string) error {
	for name, value := range values {
		if err := os.WriteFile(filepath.Join("/proc/sys", strings.ReplaceAll(name, ".", "/")), []byte(value), 0); err != nil {
			return fmt.Errorf("set sysctl: %w", err)
		}
	}
	return nil
}

func (n *namespaces) inNetwork(f func() error) error {
	if n.net == nil {
		return f()
	}
	var err error
	discard(func() {
		if err = unix.Setns(int(n.net.Fd()), unix.CLONE_NEWNET); err != nil {
			err = fmt.Errorf("enter network of pod: %w", err)
			return
		}
		err = f()
	})
	return err
}

// discard calls f on a thread that ends afterwards, so that f may change its namespaces. It never uses
// the main thread, because /proc shows its namespaces.
func discard(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		goruntime.LockOSThread()
		if unix.Gettid() != unix.Getpid() {
			f()
			return
		}
		discard(f) // on another thread, because this one is locked
		goruntime.UnlockOSThread()
	}()
	<-done
}

const uplink = "eth0"

// connect makes a point-to-point link, as the ptp CNI plugin does, so that the node routes all of the
// pod's traffic.
func connect(n *namespaces, link string, addresses, gateways []netip.Addr) error {
	pod, err := netlink.NewHandleAt(netns.NsHandle(n.net.Fd()), unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("open rtnetlink of pod: %w", err)
	}
	defer pod.Close()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = link
	pair := &netlink.Veth{LinkAttrs: attrs, PeerName: uplink, PeerNamespace: netlink.NsFd(int(n.net.Fd()))}
	if err := netlink.LinkAdd(pair); err != nil {
		return fmt.Errorf("link pod: %w", err)
	}
	outer, err := netlink.LinkByName(link)
	if err != nil {
		return err
	}
	inner, err := pod.LinkByName(uplink)
	if err != nil {
		return err
	}
	lo, err := pod.LinkByName("lo")
	if err != nil {
		return err
	}
	errs := []error{netlink.LinkSetUp(outer), pod.LinkSetUp(inner), pod.LinkSetUp(lo)}
	for i, addr := range addresses {
		gateway := gateways[i]
		direct := netlink.SCOPE_LINK
		if addr.Is6() {
			direct = netlink.SCOPE_UNIVERSE
		}
		errs = append(errs,
			netlink.AddrAdd(outer, hostAddress(gateway)), pod.AddrAdd(inner, hostAddress(addr)),
			netlink.RouteAdd(&netlink.Route{LinkIndex: outer.Attrs().Index, Dst: hostAddress(addr).IPNet, Scope: direct}),
			pod.RouteAdd(&netlink.Route{
				LinkIndex: inner.Attrs().Index, Dst: everything(addr), Gw: gateway.AsSlice(), Flags: int(netlink.FLAG_ONLINK),
			}))
	}
	return errors.Join(errs...)
}

// disconnect accepts a missing link.
func disconnect(link string) error {
	l, err := netlink.LinkByName(link)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return nil
	}
	if err != nil {
		return err
	}
	return netlink.LinkDel(l)
}

// hostAddress is alone in its prefix and skips duplicate detection.
func hostAddress(a netip.Addr) *netlink.Addr {
	addr := &netlink.Addr{IPNet: &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(a.BitLen(), a.BitLen())}}
	if a.Is6() {
		addr.Flags = unix.IFA_F_NODAD
	}
	return addr
}

func everything(a netip.Addr) *net.IPNet {
	return &net.IPNet{IP: make(net.IP, a.BitLen()/8), Mask: net.CIDRMask(0, a.BitLen())}
}
