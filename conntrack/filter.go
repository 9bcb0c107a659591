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

// IPCTNL_MSG_CT_GET
const msgGet = 1

// filter selects flows to an end with replies from an end or, with answered, flows begun by to.
type filter struct {
	family   family
	to, from end
	answered bool
}

// end has the zero addr for any address, and 0 for any port.
type end struct {
	addr netip.Addr
	port uint16
}

func endOf(ap netip.AddrPort) end { return end{addr: ap.Addr(), port: ap.Port()} }

func (e end) widen(o end) end {
	if e.addr != o.addr {
		e.addr = netip.Addr{}
	}
	if e.port != o.port {
		e.port = 0
	}
	return e
}

// hull is the narrowest end covering all added ends.
type hull struct {
	end
	some bool
}

func (h *hull) add(e end) {
	if !h.some {
		h.end, h.some = e, true
	}
	h.end = h.widen(e)
}

// filter returns the narrowest filter for the flows that m may remove; false without destinations
// of the family.
func (m *matcher) filter(f family) (filter, bool) {
	var to, from hull
	add := func(dst end, t *target) {
		to.add(dst)
		from.add(t.from(dst))
	}
	for key, t := range m.addrs {
		if familyOf(key.Addr()) == f {
			add(endOf(key), t)
		}
	}
	for key, t := range m.ports {
		if key.family == f {
			add(end{port: key.port}, t)
		}
	}
	return filter{family: f, to: to.end, from: from.end, answered: m.answered}, to.some
}

// from returns the source of replies of flows to remove: the removed backends, and the destination
// for untranslated flows. With keep, replies can come from any other address.
func (t *target) from(to end) end {
	if t.keep {
		return end{}
	}
	var out hull
	if t.untranslated {
		out.add(to)
	}
	for b := range t.backends {
		out.add(endOf(b))
	}
	return out.end
}

// CTA_FILTER_ORIG_FLAGS and CTA_FILTER_REPLY_FLAGS (enum CTA_FILTER_F in
// net/netfilter/nf_conntrack_netlink.c).
const (
	filterIPSrc   = 1 << 0
	filterIPDst   = 1 << 1
	filterProto   = 1 << 3
	filterSrcPort = 1 << 4
	filterDstPort = 1 << 5
)

// dumpRequest selects by f; older kernels return more flows. The filters of
// github.com/ti-mo/conntrack support neither protocol nor tuple.
func dumpRequest(f filter) (netlink.Message, error) {
	orig, origFlags := tupleFilter(ctaTupleOrig, f.to, ctaIPv4Dst, filterIPDst, ctaProtoDstPort, filterDstPort)
	if f.answered {
		orig, origFlags = tupleFilter(ctaTupleOrig, f.to, ctaIPv4Src, filterIPSrc, ctaProtoSrcPort, filterSrcPort)
		f.from = end{}
	}
	attrs := []netfilter.Attribute{orig}
	flags := []netfilter.Attribute{flagsAttr(ctaFilterOrigFlags, origFlags)}
	if reply, bits := tupleFilter(ctaTupleReply, f.from, ctaIPv4Src, filterIPSrc, ctaProtoSrcPort, filterSrcPort); bits != filterProto {
		attrs, flags = append(attrs, reply), append(flags, flagsAttr(ctaFilterReplyFlags, bits))
	}
	return marshalDump(f.family, append(attrs, netfilter.Attribute{Type: ctaFilter, Nested: true, Children: flags}))
}

// tupleFilter selects flows by one end. Without the protocol the kernel rejects a port.
func tupleFilter(tuple uint16, e end, ip uint16, ipBit uint32, port uint16, portBit uint32) (netfilter.Attribute, uint32) {
	flags := uint32(filterProto)
	out := netfilter.Attribute{Type: tuple, Nested: true}
	// Not for IPv6: ctnetlink_filter_match_tuple inverts the comparison of addresses, at least up
	// to Linux 6.18.
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

// flagsAttr writes the bits in the machine's byte order, unlike conntrack's other numbers.
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

// filtersReplies reports whether the kernel can filter by the reply's tuple. From Linux 5.8 until
// some version before 6.1, the kernel reads only the parts of the reply's tuple in
// CTA_FILTER_ORIG_FLAGS. The others are zero, so the filter never matches (ctnetlink_alloc_filter).
//
// The probe selects an address in CTA_FILTER_REPLY_FLAGS without sending it. Kernels that read
// these flags return EINVAL.
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
