package sctp

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
)

type socket struct {
	v4 *ipv4.PacketConn
	v6 *ipv6.PacketConn
}

// open uses the network namespace of the calling thread. If both families are wanted, one may be
// missing.
func open(want4, want6 bool) (*socket, error) {
	s := &socket{}
	var errs []error
	if want4 {
		c, err := net.ListenPacket("ip4:"+protocol, "0.0.0.0")
		if err == nil {
			s.v4 = ipv4.NewPacketConn(c)
			err = s.v4.SetControlMessage(ipv4.FlagDst, true)
		}
		errs = append(errs, err)
	}
	if want6 {
		c, err := net.ListenPacket("ip6:"+protocol, "::")
		if err == nil {
			s.v6 = ipv6.NewPacketConn(c)
			err = s.v6.SetControlMessage(ipv6.FlagDst, true)
		}
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil && s.v4 == nil && s.v6 == nil {
		return nil, fmt.Errorf("open raw socket: %w", err)
	}
	return s, nil
}

func (s *socket) read(handle func(local, remote netip.Addr, p packet)) {
	receive := func(next func([]byte) (int, net.IP, net.Addr, error)) {
		b := make([]byte, 1<<16)
		for {
			n, to, from, err := next(b)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				continue
			}
			ip, _ := from.(*net.IPAddr)
			local, ok := netip.AddrFromSlice(to)
			if ip == nil || !ok {
				continue
			}
			remote, ok := netip.AddrFromSlice(ip.IP)
			if p, valid := decode(b[:n]); ok && valid {
				handle(local.Unmap(), remote.Unmap().WithZone(ip.Zone), p)
			}
		}
	}
	if s.v4 != nil {
		go receive(func(b []byte) (int, net.IP, net.Addr, error) {
			n, cm, from, err := s.v4.ReadFrom(b)
			if err != nil || cm == nil {
				return n, nil, from, err
			}
			return n, cm.Dst, from, nil
		})
	}
	if s.v6 != nil {
		go receive(func(b []byte) (int, net.IP, net.Addr, error) {
			n, cm, from, err := s.v6.ReadFrom(b)
			if err != nil || cm == nil {
				return n, nil, from, err
			}
			return n, cm.Dst, from, nil
		})
	}
}

// write lets the kernel choose the source if local is invalid, and ignores errors, because lost
// packets are retransmitted.
func (s *socket) write(local, remote netip.Addr, p packet) {
	to := &net.IPAddr{IP: remote.AsSlice(), Zone: remote.Zone()}
	switch {
	case remote.Is4() && s.v4 != nil:
		var cm *ipv4.ControlMessage
		if local.IsValid() {
			cm = &ipv4.ControlMessage{Src: local.AsSlice()}
		}
		_, _ = s.v4.WriteTo(p.encode(), cm, to)
	case remote.Is6() && s.v6 != nil:
		var cm *ipv6.ControlMessage
		if local.IsValid() {
			cm = &ipv6.ControlMessage{Src: local.AsSlice()}
		}
		_, _ = s.v6.WriteTo(p.encode(), cm, to)
	}
}

func (s *socket) close() {
	if s.v4 != nil {
		_ = s.v4.Close()
	}
	if s.v6 != nil {
		_ = s.v6.Close()
	}
}
