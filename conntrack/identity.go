package conntrack

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/mdlayher/netlink"
	"github.com/ti-mo/netfilter"
	"golang.org/x/sys/unix"
)

// ErrEntry means that an Entry does not identify an entry of the table.
var ErrEntry = errors.New("not an entry of the connection tracking table")

// Delete deletes entries by Protocol, Source, Destination, Zone and ID, and returns their number.
// It skips missing entries, and entries with another ID. If an entry cannot be deleted, Delete
// continues and returns the first such errors.
//
// Possible errors: ErrEntry, without any deletion; ctx's; kernel errors such as EBUSY for an entry
// in a flowtable.
func (c *Conn) Delete(ctx context.Context, entries []Entry) (deleted int, err error) {
	reqs := make([]netlink.Message, len(entries))
	for i := range entries {
		if reqs[i], err = entries[i].deletion(); err != nil {
			return 0, fmt.Errorf("delete flows: entry %d: %w", i+1, err)
		}
	}
	for batch := range slices.Chunk(reqs, deleteBatch) {
		if ctx.Err() != nil {
			return deleted, errors.Join(err, ctx.Err())
		}
		n, failed := c.remove(batch)
		deleted += n
		if err == nil && failed != nil {
			err = explain(failed)
		}
	}
	return deleted, err
}

func (e *Entry) deletion() (netlink.Message, error) {
	src, dst := e.Source.Addr(), e.Destination.Addr()
	if !src.IsValid() || !dst.IsValid() || src.Is4() != dst.Is4() {
		return netlink.Message{}, fmt.Errorf("%w: source %v and destination %v", ErrEntry, e.Source, e.Destination)
	}
	f, srcAttr, dstAttr := familyOf(src), uint16(ctaIPv4Src), uint16(ctaIPv4Dst)
	if f == familyIPv6 {
		srcAttr, dstAttr = ctaIPv6Src, ctaIPv6Dst
	}
	attr := func(kind uint16, data ...byte) netfilter.Attribute {
		return netfilter.Attribute{Type: kind, Data: data}
	}
	first, second := netfilter.Uint16Bytes(e.Source.Port()), netfilter.Uint16Bytes(e.Destination.Port())
	proto := []netfilter.Attribute{attr(ctaProtoNum, e.Protocol)}
	switch e.Protocol {
	case unix.IPPROTO_ICMP:
		proto = append(proto, attr(ctaProtoICMPID, first...), attr(ctaProtoICMPType, second[0]), attr(ctaProtoICMPCode, second[1]))
	case unix.IPPROTO_ICMPV6:
		proto = append(proto, attr(ctaProtoICMPv6ID, first...), attr(ctaProtoICMPv6Type, second[0]), attr(ctaProtoICMPv6Code, second[1]))
	default:
		proto = append(proto, attr(ctaProtoSrcPort, first...), attr(ctaProtoDstPort, second...))
	}
	attrs := []netfilter.Attribute{
		{Type: ctaTupleOrig, Nested: true, Children: []netfilter.Attribute{
			{Type: ctaTupleIP, Nested: true, Children: []netfilter.Attribute{attr(srcAttr, src.AsSlice()...), attr(dstAttr, dst.AsSlice()...)}},
			{Type: ctaTupleProto, Nested: true, Children: proto},
		}},
		attr(ctaID, binary.BigEndian.AppendUint32(nil, e.ID)...),
	}
	// kernels without zones reject the attribute
	if e.Zone != 0 {
		attrs = append(attrs, attr(ctaZone, netfilter.Uint16Bytes(e.Zone)...))
	}
	return netfilter.MarshalNetlink(netfilter.Header{
		SubsystemID: netfilter.NFSubsysCTNetlink,
		MessageType: msgDelete,
		Family:      netfilter.ProtoFamily(f),
		Flags:       netlink.Request,
	}, attrs)
}
