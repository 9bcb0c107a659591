package conntrack

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/mdlayher/netlink"
	"github.com/ti-mo/netfilter"
)

// ErrEntry means that an Entry does not identify an entry of the table.
var ErrEntry = errors.New("not an entry of the connection tracking table")

// Delete deletes entries, of any protocol, and returns how many it deleted. Only Protocol,
// Source, Destination, Zone and ID count. An entry that is gone, or that has another ID
// because the same addresses and ports were used again, is left out. If an entry cannot be
// deleted, Delete goes on, and returns the errors of the first such entries.
//
// Possible errors: ErrEntry, in which case nothing was deleted; ctx's; those of the kernel,
// such as EBUSY for an entry that is in a flowtable.
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

// deletion returns the request that deletes the entry.
//
// Possible errors: ErrEntry.
func (e *Entry) deletion() (netlink.Message, error) {
	src, dst := e.Source.Addr(), e.Destination.Addr()
	if !src.IsValid() || !dst.IsValid() || src.Is4() != dst.Is4() {
		return netlink.Message{}, fmt.Errorf("%w: source %v and destination %v", ErrEntry, e.Source, e.Destination)
	}
	f, srcAttr, dstAttr := familyOf(src), uint16(ctaIPv4Src), uint16(ctaIPv4Dst)
	if f == familyIPv6 {
		srcAttr, dstAttr = ctaIPv6Src, ctaIPv6Dst
	}
	proto := []netfilter.Attribute{{Type: ctaProtoNum, Data: []byte{e.Protocol}}}
	if icmp, ok := icmpAttrs(e.Protocol); ok {
		port := e.Destination.Port()
		proto = append(proto, netfilter.Attribute{Type: icmp.id, Data: netfilter.Uint16Bytes(e.Source.Port())},
			netfilter.Attribute{Type: icmp.kind, Data: []byte{byte(port >> 8)}}, netfilter.Attribute{Type: icmp.code, Data: []byte{byte(port)}})
	} else {
		proto = append(proto, netfilter.Attribute{Type: ctaProtoSrcPort, Data: netfilter.Uint16Bytes(e.Source.Port())},
			netfilter.Attribute{Type: ctaProtoDstPort, Data: netfilter.Uint16Bytes(e.Destination.Port())})
	}
	attrs := []netfilter.Attribute{
		{Type: ctaTupleOrig, Nested: true, Children: []netfilter.Attribute{
			{Type: ctaTupleIP, Nested: true, Children: []netfilter.Attribute{{Type: srcAttr, Data: src.AsSlice()}, {Type: dstAttr, Data: dst.AsSlice()}}},
			{Type: ctaTupleProto, Nested: true, Children: proto},
		}},
		{Type: ctaID, Data: binary.BigEndian.AppendUint32(nil, e.ID)},
	}
	// Kernels without zones reject the attribute.
	if e.Zone != 0 {
		attrs = append(attrs, netfilter.Attribute{Type: ctaZone, Data: netfilter.Uint16Bytes(e.Zone)})
	}
	data, err := netfilter.MarshalAttributes(attrs)
	if err != nil {
		return netlink.Message{}, err
	}
	return deletion(append([]byte{byte(f), 0, 0, 0}, data...)), nil
}
