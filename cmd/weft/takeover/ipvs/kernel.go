package ipvs

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/cmd/weft/sockdiag"
	"github.com/weft-proxy/weft/conntrack"
)

// kernel is the host of this network namespace. A missing object is not an error.
type kernel struct{}

// From linux/ip_vs.h.
const (
	genlVersion     = 1
	cmdDelService   = 3
	attrService     = 1
	serviceFamily   = 1
	serviceProtocol = 2
	serviceAddr     = 3
	servicePort     = 4
)

// tcpTimeWait is of enum tcp_conntrack; states from it on are of connections that have ended.
const tcpTimeWait = 7

func (kernel) deleteServer(s Server) error {
	family, err := netlink.GenlFamilyGet("IPVS")
	if err != nil {
		return err
	}
	af := uint16(unix.AF_INET6)
	if s.addr.Is4() {
		af = unix.AF_INET
	}
	req := nl.NewNetlinkRequest(int(family.ID), unix.NLM_F_ACK)
	req.AddData(&nl.Genlmsg{Command: cmdDelService, Version: genlVersion})
	service := nl.NewRtAttr(unix.NLA_F_NESTED|attrService, nil)
	service.AddRtAttr(serviceFamily, nl.Uint16Attr(af))
	service.AddRtAttr(serviceProtocol, nl.Uint16Attr(uint16(s.protocol)))
	service.AddRtAttr(serviceAddr, s.addr.AsSlice())
	service.AddRtAttr(servicePort, binary.BigEndian.AppendUint16(nil, s.port))
	req.AddData(service)
	_, err = req.Execute(unix.NETLINK_GENERIC, 0)
	return without(unix.ESRCH, err)
}

// connections asks connection tracking, which kube-proxy has IPVS use. IPVS itself also takes weft's
// connections for its own, if a client uses a port again.
func (kernel) connections(ctx context.Context) (map[end]int, error) {
	open := make(map[end]int)
	return open, untranslated(ctx, func(e *conntrack.Entry) {
		if e.Protocol != unix.IPPROTO_UDP && e.TCPState < tcpTimeWait {
			open[endOf(e.Protocol, e.Destination)]++
		}
	}, nil)
}

func (kernel) deleteFlows(ctx context.Context, f func(end) bool) error {
	var stale []conntrack.Entry
	return untranslated(ctx, func(e *conntrack.Entry) {
		// An answer may begin an entry too.
		if f(endOf(e.Protocol, e.Destination)) || f(endOf(e.Protocol, e.ReplyDestination)) {
			stale = append(stale, *e)
		}
	}, func(conn *conntrack.Conn) error {
		_, err := conn.Delete(ctx, stale)
		return err
	})
}

// untranslated lists entries of connections without a nat rule: IPVS changes the addresses of replies
// itself. after may be nil.
func untranslated(ctx context.Context, f func(*conntrack.Entry), after func(*conntrack.Conn) error) error {
	conn, err := conntrack.Open()
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	err = conn.List(ctx, conntrack.SelectAll(), func(e *conntrack.Entry) error {
		if !e.Translated {
			f(e)
		}
		return nil
	})
	if err == nil && after != nil {
		err = after(conn)
	}
	return err
}

func (kernel) sockets(f func(netip.Addr) bool) ([]sockdiag.Socket, error) { return sockdiag.From(f) }

func (kernel) destroySocket(s sockdiag.Socket) error {
	return without(unix.ENOENT, sockdiag.Destroy(s))
}

func (kernel) deleteAddress(a netip.Addr) error {
	link, err := netlink.LinkByName(Device)
	if err == nil {
		err = netlink.AddrDel(link, &netlink.Addr{IPNet: &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(a.BitLen(), a.BitLen())}})
	}
	return without(unix.EADDRNOTAVAIL, err)
}

func (kernel) deleteDevice() error {
	link, err := netlink.LinkByName(Device)
	if err == nil {
		err = netlink.LinkDel(link)
	}
	return err
}

func (kernel) destroySet(name string) error {
	_, err := askIPSet(nl.IPSET_CMD_DESTROY, name)
	return without(unix.ENOENT, err)
}

func without(missing unix.Errno, err error) error {
	if errors.Is(err, missing) {
		return nil
	}
	return err
}
