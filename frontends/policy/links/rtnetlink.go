package links

import (
	"encoding/binary"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

const (
	// RTEXT_FILTER_SKIP_STATS omits the counters of interfaces.
	skipStatistics = 1 << 3
	attributeType  = 1<<14 - 1
)

// Interfaces come first, because the rest refers to them.
var dumps = []struct {
	request, answer uint16
	data            []nl.NetlinkRequestData
}{
	{unix.RTM_GETLINK, unix.RTM_NEWLINK, []nl.NetlinkRequestData{nl.NewIfInfomsg(unix.AF_UNSPEC), nl.NewRtAttr(unix.IFLA_EXT_MASK, nl.Uint32Attr(skipStatistics))}},
	{unix.RTM_GETROUTE, unix.RTM_NEWROUTE, []nl.NetlinkRequestData{&nl.RtMsg{}}},
	{unix.RTM_GETNEIGH, unix.RTM_NEWNEIGH, []nl.NetlinkRequestData{&netlink.Ndmsg{}}},
}

func subscribe(buffer int) (*nl.NetlinkSocket, error) {
	s, err := nl.Subscribe(unix.NETLINK_ROUTE, unix.RTNLGRP_LINK, unix.RTNLGRP_NEIGH, unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV6_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("subscribe to rtnetlink: %w", err)
	}
	if s.SetReceiveBufferSize(buffer, true) != nil {
		// Without CAP_NET_ADMIN, net.core.rmem_max is the limit.
		_ = s.SetReceiveBufferSize(buffer, false)
	}
	return s, nil
}

// receive returns EAGAIN if no event came, and ENOBUFS if events were lost. A wait of 0 means no
// limit.
func receive(s *nl.NetlinkSocket, wait time.Duration) ([]syscall.NetlinkMessage, error) {
	limit := unix.NsecToTimeval(int64(wait))
	_ = s.SetReceiveTimeout(&limit)
	messages, from, err := s.Receive()
	if err != nil {
		return nil, fmt.Errorf("receive from rtnetlink: %w", err)
	}
	if from.Pid != nl.PidKernel {
		return nil, nil
	}
	return messages, nil
}

func ask(kind uint16, flags int, data ...nl.NetlinkRequestData) ([][]byte, error) {
	r := nl.NewNetlinkRequest(int(kind), flags)
	for _, d := range data {
		r.AddData(d)
	}
	answers, err := r.Execute(unix.NETLINK_ROUTE, 0)
	if err != nil {
		return nil, fmt.Errorf("ask rtnetlink, request %d: %w", kind, err)
	}
	return answers, nil
}

// portOf returns ENOENT if there is no port.
func portOf(s station) (port int32, err error) {
	data := []nl.NetlinkRequestData{&netlink.Ndmsg{Family: unix.AF_BRIDGE}, nl.NewRtAttr(unix.NDA_MASTER, nl.Uint32Attr(uint32(s.device))), nl.NewRtAttr(unix.NDA_LLADDR, s.mac[:])}
	answers, err := ask(unix.RTM_GETNEIGH, 0, data...)
	if errors.Is(err, unix.ENOENT) {
		// In the VLAN for the bridge's own packets.
		vlan := binary.NativeEndian.AppendUint16(nil, 1)
		answers, err = ask(unix.RTM_GETNEIGH, 0, append(data, nl.NewRtAttr(unix.NDA_VLAN, vlan))...)
	}
	for _, b := range answers {
		if h, _ := split(b, unix.SizeofNdMsg); h != nil && forwards(h) {
			port = device(h)
		}
	}
	return port, err
}

type attributes [64][]byte

// split returns the attributes before the first truncated one; header is nil if truncated.
func split(b []byte, length int) (header []byte, a attributes) {
	if len(b) < length {
		return nil, a
	}
	header, b = b[:length], b[length:]
	for len(b) >= unix.SizeofRtAttr {
		n := int(binary.NativeEndian.Uint16(b))
		if n < unix.SizeofRtAttr || n > len(b) {
			break
		}
		if kind := binary.NativeEndian.Uint16(b[2:]) & attributeType; int(kind) < len(a) {
			a[kind] = b[unix.SizeofRtAttr:n]
		}
		b = b[min((n+unix.RTA_ALIGNTO-1)&^(unix.RTA_ALIGNTO-1), len(b)):]
	}
	return header, a
}

func (a *attributes) number(kind int) uint32 {
	if len(a[kind]) != 4 {
		return 0
	}
	return binary.NativeEndian.Uint32(a[kind])
}

func device(header []byte) int32 { return int32(binary.NativeEndian.Uint32(header[4:])) }

func state(header []byte) uint16 { return binary.NativeEndian.Uint16(header[8:]) }

// Entries of the bridge and its ports are permanent.
func forwards(header []byte) bool {
	return header[0] == unix.AF_BRIDGE && state(header)&unix.NUD_PERMANENT == 0
}
