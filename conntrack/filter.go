package conntrack

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/mdlayher/netlink"
	"github.com/ti-mo/netfilter"
	"golang.org/x/sys/unix"
)

// msgGet is IPCTNL_MSG_CT_GET.
const msgGet = 1

// filter is what the kernel is asked to leave out of the dump of one family: flows
// to elsewhere than to, and flows whose replies come from elsewhere than from.
type filter struct {
	family   family
	to, from end
}

// end is one end of a flow, as far as a filter cares: any address where addr is not
// valid, any port where port is zero.
type end struct {
	addr netip.Addr
	port uint16
}

func endOf(ap netip.AddrPort) end { return end{addr: ap.Addr(), port: ap.Port()} }

// widen returns the narrowest end that lets both through.
func (e end) widen(o end) end {
	if e.addr != o.addr {
		e.addr = netip.Addr{}
	}
	if e.port != o.port {
		e.port = 0
	}
	return e
}

// filter returns the narrowest filter that lets every stale flow of a family
// through, and false if m has no target of that family.
func (m *matcher) filter(f family) (filter, bool) {
	out := filter{family: f}
	found := false
	join := func(to end, t *target) {
		from := t.from(to)
		if !found {
			found, out.to, out.from = true, to, from
			return
		}
		out.to, out.from = out.to.widen(to), out.from.widen(from)
	}
	for key, t := range m.vips {
		if familyOf(key.Addr()) == f {
			join(endOf(key), t)
		}
	}
	for key, t := range m.ports {
		if key.family == f {
			join(end{port: key.port}, t)
		}
	}
	return out, found
}

// from returns where the replies of the stale flows to a destination come from: its
// lost backends, and the destination itself where flows that were not translated are
// stale. All that is known of a live destination is where they do not come from.
func (t *target) from(to end) end {
	if t.live {
		return end{}
	}
	var out end
	found := false
	if t.unrouted {
		out, found = to, true
	}
	for b := range t.backends {
		switch {
		case !found:
			out, found = endOf(b), true
		case out == end{}:
			return out
		default:
			out = out.widen(endOf(b))
		}
	}
	return out
}

// Bits of CTA_FILTER_ORIG_FLAGS and CTA_FILTER_REPLY_FLAGS: the parts of a tuple that
// a flow must share with the request's (net/netfilter/nf_conntrack_netlink.c, enum
// CTA_FILTER_F).
const (
	filterIPSrc   = 1 << 0
	filterIPDst   = 1 << 1
	filterProto   = 1 << 3
	filterSrcPort = 1 << 4
	filterDstPort = 1 << 5
)

// dumpRequest asks for the UDP flows of f, and perhaps more. The library's own filters
// know neither protocol nor tuple.
func dumpRequest(f filter) (netlink.Message, error) {
	orig, origFlags := tupleFilter(ctaTupleOrig, f.to, ctaIPv4Dst, filterIPDst, ctaProtoDstPort, filterDstPort)
	attrs := []netfilter.Attribute{orig}
	flags := []netfilter.Attribute{flagsAttr(ctaFilterOrigFlags, origFlags)}
	if reply, bits := tupleFilter(ctaTupleReply, f.from, ctaIPv4Src, filterIPSrc, ctaProtoSrcPort, filterSrcPort); bits != filterProto {
		attrs, flags = append(attrs, reply), append(flags, flagsAttr(ctaFilterReplyFlags, bits))
	}
	return marshalDump(f.family, append(attrs, netfilter.Attribute{Type: ctaFilter, Nested: true, Children: flags}))
}

// tupleFilter returns a tuple of the request with what is known of one end of it, and
// which bits that makes. It always has the protocol, without which the kernel takes no
// port.
func tupleFilter(tuple uint16, e end, ip uint16, ipBit uint32, port uint16, portBit uint32) (netfilter.Attribute, uint32) {
	flags := uint32(filterProto)
	out := netfilter.Attribute{Type: tuple, Nested: true}
	// Not for IPv6: there the kernel lets through all but the address
	// (ctnetlink_filter_match_tuple takes equal for different, up to 6.18 at least).
	if e.addr.Is4() {
		flags |= ipBit
		out.Children = append(out.Children, netfilter.Attribute{Type: ctaTupleIP, Nested: true,
			Children: []netfilter.Attribute{{Type: ip, Data: e.addr.AsSlice()}}})
	}
	proto := netfilter.Attribute{Type: ctaTupleProto, Nested: true,
		Children: []netfilter.Attribute{{Type: ctaProtoNum, Data: []byte{unix.IPPROTO_UDP}}}}
	if e.port != 0 {
		flags |= portBit
		proto.Children = append(proto.Children, netfilter.Attribute{Type: port, Data: netfilter.Uint16Bytes(e.port)})
	}
	out.Children = append(out.Children, proto)
	return out, flags
}

// flagsAttr is alone among conntrack's numbers in the host's byte order.
func flagsAttr(kind uint16, flags uint32) netfilter.Attribute {
	return netfilter.Attribute{Type: kind, Data: binary.NativeEndian.AppendUint32(nil, flags)}
}

func marshalDump(f family, attrs []netfilter.Attribute) (netlink.Message, error) {
	return netfilter.MarshalNetlink(netfilter.Header{
		SubsystemID: netfilter.NFSubsysCTNetlink,
		MessageType: msgGet,
		Family:      netfilter.ProtoFamily(f),
		Flags:       netlink.Request | netlink.Dump,
	}, attrs)
}

// filtersReplies finds out whether a filter may name where replies come from. From
// Linux 5.8, which brought CTA_FILTER, until some version before 6.1, the kernel reads
// those parts of the reply's tuple that CTA_FILTER_ORIG_FLAGS names, so that others
// count as zero and no flow matches (ctnetlink_alloc_filter). Asked for an address
// that the request does not have, only a kernel that reads what the reply's own flags
// name refuses. Others answer with no flow, or with all where there is no CTA_FILTER.
func (c *Conn) filtersReplies() (bool, error) {
	if !loaded() {
		return false, nil
	}
	reply, bits := tupleFilter(ctaTupleReply, end{}, ctaIPv4Src, filterIPSrc, ctaProtoSrcPort, filterSrcPort)
	req, err := marshalDump(familyIPv4, []netfilter.Attribute{reply, {Type: ctaFilter, Nested: true,
		Children: []netfilter.Attribute{flagsAttr(ctaFilterReplyFlags, bits|filterIPSrc)}}})
	if err != nil {
		return false, err
	}
	if _, err := c.dump.Send(req); err != nil {
		return false, fmt.Errorf("probe filter: %w", err)
	}
	for _, err := range c.dump.ReceiveIter() {
		switch {
		case errors.Is(err, unix.EINVAL):
			return true, nil
		case err != nil:
			return false, fmt.Errorf("probe filter: %w", err)
		}
	}
	return false, nil
}
