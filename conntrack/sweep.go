package conntrack

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"

	"github.com/mdlayher/netlink"
	"github.com/ti-mo/conntrack"
	"github.com/ti-mo/netfilter"
	rtnetlink "github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// maxInterrupts is how often a pass is repeated because the kernel says that
// the table changed under it. kube-proxy takes 5 as well.
const maxInterrupts = 5

// msgGet is IPCTNL_MSG_CT_GET.
const msgGet = 1

// sweep removes the flows that m calls stale, in one pass for each family that
// m has targets in.
func (c *Conn) sweep(ctx context.Context, m *matcher) (deleted int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(m.ports) > 0 {
		if m.local, err = c.localAddrs(); err != nil {
			return 0, err
		}
	}
	for _, family := range families {
		f, ok := m.filter(family)
		if !ok {
			continue
		}
		n, err := c.sweepFamily(ctx, m, f)
		deleted += n
		if err != nil {
			return deleted, err
		}
	}
	return deleted, nil
}

// sweepFamily makes the pass of one family, again where it was interrupted.
func (c *Conn) sweepFamily(ctx context.Context, m *matcher, f filter) (deleted int, err error) {
	for range maxInterrupts {
		var n int
		n, err = c.pass(ctx, m, f)
		deleted += n
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	// nfnetlink answers EINVAL where a subsystem is not loaded.
	if errors.Is(err, unix.EINVAL) && !loaded() {
		return deleted, nil
	}
	return deleted, err
}

// pass reads the flows of a family once and removes the stale ones as it goes.
// It returns an error that wraps EINTR where the table changed so that the
// dump may have missed flows. An entry that can't be removed does not stop the
// pass.
func (c *Conn) pass(ctx context.Context, m *matcher, f filter) (deleted int, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	req, err := dumpRequest(f)
	if err != nil {
		return 0, err
	}
	if _, err := c.dump.Send(req); err != nil {
		return 0, fmt.Errorf("dump flows: %w", err)
	}
	var errs []error
	interrupted := false
	for msg, err := range c.dump.ReceiveIter() {
		if err != nil {
			return deleted, errors.Join(append(errs, fmt.Errorf("dump flows: %w", err))...)
		}
		if err := ctx.Err(); err != nil {
			// Leaving the loop discards the rest of the dump.
			return deleted, errors.Join(append(errs, err)...)
		}
		interrupted = interrupted || msg.Header.Flags&netlink.DumpInterrupted != 0
		if flow, ok := decodeUDP(msg.Data); !ok || !m.stale(flow) {
			continue
		}
		switch gone, err := c.remove(msg); {
		case err != nil:
			errs = append(errs, err)
		case gone:
			deleted++
		}
	}
	if interrupted {
		errs = append(errs, fmt.Errorf("dump flows: table changed during the dump: %w", unix.EINTR))
	}
	return deleted, errors.Join(errs...)
}

// remove deletes the entry of a dump's message, by its original tuple and its
// zone. It returns false where the entry is gone already.
func (c *Conn) remove(msg netlink.Message) (bool, error) {
	var ev conntrack.Event
	if err := ev.Unmarshal(msg); err != nil {
		return false, fmt.Errorf("decode flow: %w", err)
	}
	// What identifies the entry, and nothing else: the library sends all that
	// a Flow holds.
	err := c.delete.Delete(conntrack.Flow{
		TupleOrig:  ev.Flow.TupleOrig,
		TupleReply: ev.Flow.TupleReply,
		Zone:       ev.Flow.Zone,
	})
	if errors.Is(err, unix.ENOENT) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("delete flow %v: %w", ev.Flow.TupleOrig, err)
	}
	return true, nil
}

// Bits of CTA_FILTER_ORIG_FLAGS: the parts of the original tuple that a flow
// must share with the request's (net/netfilter/nf_conntrack_netlink.c,
// enum CTA_FILTER_F).
const (
	filterIPDst   = 1 << 1
	filterProto   = 1 << 3
	filterDstPort = 1 << 5
)

// dumpRequest asks for the UDP flows of f, and perhaps more. The library's own filters know
// neither protocol nor tuple.
func dumpRequest(f filter) (netlink.Message, error) {
	flags := uint32(filterProto)
	orig := netfilter.Attribute{Type: ctaTupleOrig, Nested: true}
	// Not for IPv6: there the kernel lets through all but the address
	// (ctnetlink_filter_match_tuple takes equal for different; seen on 6.18).
	if f.addr.Is4() {
		flags |= filterIPDst
		orig.Children = append(orig.Children, netfilter.Attribute{Type: ctaTupleIP, Nested: true,
			Children: []netfilter.Attribute{{Type: ctaIPv4Dst, Data: f.addr.AsSlice()}}})
	}
	proto := netfilter.Attribute{Type: ctaTupleProto, Nested: true,
		Children: []netfilter.Attribute{{Type: ctaProtoNum, Data: []byte{unix.IPPROTO_UDP}}}}
	if f.port != 0 {
		flags |= filterDstPort
		proto.Children = append(proto.Children,
			netfilter.Attribute{Type: ctaProtoDstPort, Data: netfilter.Uint16Bytes(f.port)})
	}
	orig.Children = append(orig.Children, proto)
	return netfilter.MarshalNetlink(
		netfilter.Header{
			SubsystemID: netfilter.NFSubsysCTNetlink,
			MessageType: msgGet,
			Family:      netfilter.ProtoFamily(f.family),
			Flags:       netlink.Request | netlink.Dump,
		},
		[]netfilter.Attribute{orig, {Type: ctaFilter, Nested: true, Children: []netfilter.Attribute{{
			// Alone among conntrack's numbers in the host's byte order.
			Type: ctaFilterOrigFlags, Data: binary.NativeEndian.AppendUint32(nil, flags)}}}},
	)
}

// probe deletes a flow that can't exist, to find out whether flows may be
// deleted at all.
func (c *Conn) probe() error {
	none := netip.IPv4Unspecified()
	err := c.delete.Delete(conntrack.NewFlow(unix.IPPROTO_UDP, 0, none, none, 0, 0, 0, 0))
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EINVAL) && !loaded() {
		return nil
	}
	return err
}

// loaded reports whether the kernel tracks connections at all.
func loaded() bool {
	_, err := os.Stat("/proc/sys/net/netfilter/nf_conntrack_max")
	return !errors.Is(err, os.ErrNotExist)
}

// localAddrs returns the addresses of the namespace's interfaces.
func (c *Conn) localAddrs() (map[netip.Addr]struct{}, error) {
	var list []rtnetlink.Addr
	var err error
	for range maxInterrupts {
		if list, err = c.addrs.AddrList(nil, rtnetlink.FAMILY_ALL); !errors.Is(err, rtnetlink.ErrDumpInterrupted) {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("list local addresses: %w", err)
	}
	out := make(map[netip.Addr]struct{}, len(list))
	for _, a := range list {
		if addr, ok := netip.AddrFromSlice(a.IP); ok {
			out[plain(addr)] = struct{}{}
		}
	}
	return out, nil
}
