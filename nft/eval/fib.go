package eval

import (
	"encoding/binary"

	google "github.com/google/nftables/expr"

	"github.com/weft-proxy/weft/nft/expr"
)

// fib loads the type of an address.
func (m *machine) fib(k expr.Library, e *google.Fib) {
	if !e.ResultADDRTYPE || e.FlagIIF || e.FlagOIF || e.FlagMARK || e.FlagPRESENT || e.FlagSADDR == e.FlagDADDR {
		m.unknown(k)
	}
	addr := m.out.Packet.Source()
	if e.FlagDADDR {
		addr = m.out.Packet.Destination()
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
