package render

import (
	"encoding/binary"
	"net/netip"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/frontends/services/model"
)

// packed collects elements without comments in the form of weftv1.PackedElements.
type packed struct{ list []*weftv1.PackedElements }

// packedMost is the number of elements in a message; the client sends large snapshots in parts.
const packedMost = 4096

// add copies its arguments.
func (p *packed) add(key, value []byte) {
	if len(p.list) == 0 || p.list[len(p.list)-1].GetCount() == packedMost {
		p.list = append(p.list, &weftv1.PackedElements{})
	}
	m := p.list[len(p.list)-1]
	m.Count++
	m.Keys, m.Values = append(m.Keys, key...), append(m.Values, value...)
}

func (p *packed) addEndpoint(ep netip.AddrPort) {
	var key [24]byte
	p.add(packEndpoint(key[:0], ep), nil)
}

func (p *packed) len() int { return weftv1.CountPacked(p.list) }

func (p *packed) without(o *packed) (out packed) {
	if len(p.list) == 0 || len(o.list) == 0 {
		return *p
	}
	others := make(map[string]struct{}, o.len())
	o.each(func(key []byte) { others[string(key)] = struct{}{} })
	p.each(func(key []byte) {
		if _, ok := others[string(key)]; !ok {
			out.add(key, nil)
		}
	})
	return out
}

func (p *packed) each(f func(key []byte)) {
	for _, m := range p.list {
		width := len(m.GetKeys()) / int(m.GetCount())
		for at := 0; at < len(m.GetKeys()); at += width {
			f(m.GetKeys()[at : at+width])
		}
	}
}

// The functions below append parts of keys and data, each followed by zeros up to a multiple of four bytes.

func packAddr(a netip.Addr, b []byte) []byte {
	if a.Is4() {
		v4 := a.As4()
		return append(b, v4[:]...)
	}
	v6 := a.As16()
	return append(b, v6[:]...)
}

func packPort(b []byte, port uint16) []byte {
	return append(binary.BigEndian.AppendUint16(b, port), 0, 0)
}

func packProtocol(b []byte, p model.Protocol) []byte { return append(b, byte(p), 0, 0, 0) }

func packEndpoint(b []byte, ep netip.AddrPort) []byte {
	return packPort(packAddr(ep.Addr(), b), ep.Port())
}

// packSlot is for the result of numgen, which is in host byte order.
func packSlot(b []byte, slot int) []byte {
	return binary.NativeEndian.AppendUint32(b, uint32(slot)) //nolint:gosec // at most localSlots and the most endpoints
}

func (k listenerKey) pack(b []byte) []byte {
	if !k.nodePort() {
		b = packAddr(k.addr, b)
	}
	return packPort(packProtocol(b, k.protocol), k.port)
}

func (h hairpinKey) pack(b []byte) []byte {
	return listenerKey{addr: h.addr.Addr(), port: h.addr.Port(), protocol: h.protocol}.pack(packAddr(h.addr.Addr(), b))
}
