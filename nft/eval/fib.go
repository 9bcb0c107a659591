package eval

import (
	"encoding/binary"
	"net/netip"

	"github.com/weft-proxy/weft/nft/expr"
	"golang.org/x/sys/unix"
)

func (m *machine) fib(e *expr.Fib) {
	if e.Result == unix.NFT_FIB_RESULT_OIF && e.Flags&^unix.NFTA_FIB_F_PRESENT == unix.NFTA_FIB_F_SADDR|unix.NFTA_FIB_F_IIF {
		m.reversePath(e)
		return
	}
	var addr netip.Addr
	switch {
	case e.Result != unix.NFT_FIB_RESULT_ADDRTYPE:
		m.unknown(e)
	case e.Flags == unix.NFTA_FIB_F_SADDR:
		addr = m.out.Packet.Source()
	case e.Flags == unix.NFTA_FIB_F_DADDR:
		addr = m.out.Packet.Destination()
	default:
		m.unknown(e)
	}
	var typ uint32
	ok := m.host.AddressType != nil
	if ok {
		typ, ok = m.host.AddressType(addr)
	}
	if !ok {
		undecided("the type of address %s is not known", addr)
	}
	m.registers.store(e.Register, binary.NativeEndian.AppendUint32(nil, typ))
}

// reversePath does the same as nft_fib4_eval in net/ipv4/netfilter/nft_fib_ipv4.c.
func (m *machine) reversePath(e *expr.Fib) {
	source, in := m.out.Packet.Source(), m.out.Packet.In
	reached, ok := in.Name == "lo", true
	if !reached {
		if ok = m.host.Reaches != nil; ok {
			reached, ok = m.host.Reaches(source, in)
		}
	}
	if !ok {
		undecided("whether %s is reached through %s is not known", source, in.Name)
	}
	value := make([]byte, 4)
	switch {
	case reached && e.Flags&unix.NFTA_FIB_F_PRESENT != 0:
		value[0] = 1
	case reached:
		binary.NativeEndian.PutUint32(value, in.Index)
	}
	m.registers.store(e.Register, value)
}
