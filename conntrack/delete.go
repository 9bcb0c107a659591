package conntrack

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"github.com/mdlayher/netlink"
	"github.com/ti-mo/netfilter"
	"golang.org/x/sys/unix"
)

// msgDelete is IPCTNL_MSG_CT_DELETE.
const msgDelete = 2

// deleteBatch is how many entries are removed with one write to the kernel. Where all
// have gone already, as many errors wait in the socket's buffer, about 1 KiB each.
const deleteBatch = 64

// answerWait bounds the wait for an answer that does not come, as for want of memory.
const answerWait = 10 * time.Second

// deleteRequest returns the removal of the entry that a message of a dump is about:
// by original tuple, zone and id, as the kernel wrote them: what a packet has made anew
// since has another id, unless it took the same memory. It returns false where the
// tuple is missing, which the kernel would take for a removal of every entry.
func deleteRequest(msg []byte) (netlink.Message, bool) {
	if len(msg) < nfgenmsgLen {
		return netlink.Message{}, false
	}
	found := false
	data := append(make([]byte, 0, 128), msg[:nfgenmsgLen]...)
	for attrs := msg[nfgenmsgLen:]; len(attrs) > 0; {
		kind, value, rest, ok := nextAttr(attrs)
		if !ok {
			return netlink.Message{}, false
		}
		if kind == ctaTupleOrig || kind == ctaZone || kind == ctaID {
			data = append(data, attrs[:len(attrs)-len(rest)]...)
		}
		found = found || kind == ctaTupleOrig && len(value) > 0
		attrs = rest
	}
	return deletion(data), found
}

// deletion is the request with its data, from the header of nfnetlink on.
func deletion(data []byte) netlink.Message {
	return netlink.Message{
		Header: netlink.Header{
			Type:  netlink.HeaderType(uint16(netfilter.NFSubsysCTNetlink)<<8 | msgDelete),
			Flags: netlink.Request,
		},
		Data: data,
	}
}

// fence is a message that the kernel does nothing about but answer. It answers in the
// order of the requests, so all that went wrong with those before it comes first.
func fence() netlink.Message {
	return netlink.Message{Header: netlink.Header{Type: netlink.Noop, Flags: netlink.Request | netlink.Acknowledge}}
}

// remove deletes entries, and returns how many were still there.
func (c *Conn) remove(reqs []netlink.Message) (deleted int, err error) {
	if len(reqs) == 0 {
		return 0, nil
	}
	if _, err := c.delete.SendMessages(append(reqs, fence())); err != nil {
		return 0, fmt.Errorf("delete flows: %w", err)
	}
	// The answers are there already: the kernel is done when the write returns.
	if err := c.delete.SetReadDeadline(time.Now().Add(answerWait)); err != nil {
		return 0, fmt.Errorf("delete flows: %w", err)
	}
	deleted = len(reqs)
	var errs []error
	for {
		// Each error is a message of its own.
		_, err := c.delete.Receive()
		if err == nil {
			return deleted, errors.Join(errs...)
		}
		if errors.Is(err, os.ErrPermission) || errors.Is(err, os.ErrDeadlineExceeded) {
			// Without the capability it looks at no request, and answers once.
			return 0, fmt.Errorf("delete flows: %w", err)
		}
		deleted--
		if !errors.Is(err, unix.ENOENT) {
			errs = append(errs, fmt.Errorf("delete flow: %w", err))
		}
		if deleted < 0 {
			// More errors than requests: it is the socket that fails.
			return 0, errors.Join(errs...)
		}
	}
}

// probe deletes a flow that can't exist, to find out whether flows may be
// deleted at all.
func (c *Conn) probe() error {
	none := netip.IPv4Unspecified().AsSlice()
	port := netfilter.Uint16Bytes(0)
	attrs, err := netfilter.MarshalAttributes([]netfilter.Attribute{{Type: ctaTupleOrig, Nested: true, Children: []netfilter.Attribute{
		{Type: ctaTupleIP, Nested: true, Children: []netfilter.Attribute{{Type: ctaIPv4Src, Data: none}, {Type: ctaIPv4Dst, Data: none}}},
		{Type: ctaTupleProto, Nested: true, Children: []netfilter.Attribute{
			{Type: ctaProtoNum, Data: []byte{unix.IPPROTO_UDP}}, {Type: ctaProtoSrcPort, Data: port}, {Type: ctaProtoDstPort, Data: port},
		}},
	}}})
	if err != nil {
		return err
	}
	_, err = c.remove([]netlink.Message{deletion(append([]byte{byte(familyIPv4), 0, 0, 0}, attrs...))})
	if errors.Is(err, unix.EINVAL) && !loaded() {
		return nil
	}
	return err
}
