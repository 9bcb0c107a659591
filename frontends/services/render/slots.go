package render

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"slices"

	"github.com/weft-proxy/weft/frontends/services/model"
)

const (
	portBytes = 2
	maxWidth  = 16 + portBytes
)

// widths are the bytes per slot: address, then port, both big-endian.
var widths = [model.NumFamilies]int{model.IPv4: 4 + portBytes, model.IPv6: maxWidth}

// The endpoints are unique.
type slots struct {
	width  int
	packed []byte
}

func pack(b []byte, ep netip.AddrPort) []byte {
	return binary.BigEndian.AppendUint16(packAddr(ep.Addr(), b), ep.Port())
}

func (s *slots) len() int { return len(s.packed) / s.width }

func (s *slots) raw(i int) []byte { return s.packed[i*s.width : (i+1)*s.width] }

func (s *slots) at(i int) netip.AddrPort {
	raw := s.raw(i)
	addr, _ := netip.AddrFromSlice(raw[:s.width-portBytes])
	return netip.AddrPortFrom(addr, binary.BigEndian.Uint16(raw[s.width-portBytes:]))
}

// The caller must fill the slots.
func (s *slots) make(n int) { s.packed = make([]byte, n*s.width) }

func (s *slots) vacant(i int) bool {
	var empty [maxWidth]byte
	return bytes.Equal(s.raw(i), empty[:s.width])
}

// find returns -1 if absent.
func (s *slots) find(ep netip.AddrPort) int {
	var scratch [maxWidth]byte
	raw := pack(scratch[:0], ep)
	for from := 0; ; from++ {
		at := bytes.Index(s.packed[from:], raw)
		if at < 0 {
			return -1
		}
		if from += at; from%s.width == 0 {
			return from / s.width
		}
	}
}

// finder indexes the slots if n calls are then faster.
func (s *slots) finder(n int) func(netip.AddrPort) int {
	const fewScans = 64
	if n <= fewScans || s.len() <= fewScans {
		return s.find
	}
	index := make(map[netip.AddrPort]int, s.len())
	for i := range s.len() {
		index[s.at(i)] = i
	}
	return func(ep netip.AddrPort) int {
		if i, ok := index[ep]; ok {
			return i
		}
		return -1
	}
}

// put fills an empty slot, or appends a slot.
func (s *slots) put(i int, ep netip.AddrPort) {
	if i == s.len() {
		s.packed = pack(s.packed, ep)
	} else {
		pack(s.raw(i)[:0], ep)
	}
}

// The caller must fill an empty slot or cut it off.
func (s *slots) vacate(i int) { clear(s.raw(i)) }

// The cut slots must be empty.
func (s *slots) cut(n int) {
	s.packed = s.packed[:n*s.width]
	const sparse, small = 4, 64
	if cap(s.packed) > sparse*max(len(s.packed), small) {
		s.packed = slices.Clone(s.packed)
	}
}

func (s *slots) clone() slots { return slots{width: s.width, packed: slices.Clone(s.packed)} }
