package eval

import (
	"encoding/binary"
	"net/netip"

	"github.com/weft-proxy/weft/nft/expr"
	"golang.org/x/sys/unix"
)

// fib loads the type of an address.
func (m *machine) fib(e *expr.Fib) {
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
