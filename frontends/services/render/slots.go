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
	// bytes of an IPv6 slot
	maxWidth = 16 + portBytes
)

// widths are the bytes per slot: address, then port, both big-endian.
var widths = [model.NumFamilies]int{model.IPv4: 4 + portBytes, model.IPv6: maxWidth}

// indexedFrom is the slot count from which an index is faster than a search.
const indexedFrom = 64

// slots are the endpoints of one family by number. They are packed, because Services and endpoints can be
// very many. Endpoints are unique.
type slots struct {
	// bytes per slot
	width  int
	packed []byte
	// index is a hash table of slot numbers plus one, with linear probing; 0 is free. It is nil for few
	// slots.
	index []uint32
}

func pack(b []byte, ep netip.AddrPort) []byte {
	if ep.Addr().Is4() {
		a := ep.Addr().As4()
		b = append(b, a[:]...)
	} else {
		a := ep.Addr().As16()
		b = append(b, a[:]...)
	}
	return binary.BigEndian.AppendUint16(b, ep.Port())
}

func (s *slots) len() int { return len(s.packed) / s.width }

func (s *slots) raw(i int) []byte { return s.packed[i*s.width : (i+1)*s.width] }

func (s *slots) at(i int) netip.AddrPort {
	raw := s.raw(i)
	addr, _ := netip.AddrFromSlice(raw[:s.width-portBytes])
	return netip.AddrPortFrom(addr, binary.BigEndian.Uint16(raw[s.width-portBytes:]))
}

// make makes n empty slots, which the caller must fill.
func (s *slots) make(n int) {
	s.packed = make([]byte, n*s.width)
	s.reindex()
}

func (s *slots) vacant(i int) bool {
	var empty [maxWidth]byte
	return bytes.Equal(s.raw(i), empty[:s.width])
}

// find returns the slot of an endpoint, or -1, and the number of slots visited.
func (s *slots) find(ep netip.AddrPort) (slot, looked int) {
	var scratch [maxWidth]byte
	raw := pack(scratch[:0], ep)
	if s.index == nil {
		for i := range s.len() {
			if bytes.Equal(s.raw(i), raw) {
				return i, i + 1
			}
		}
		return -1, s.len()
	}
	mask := len(s.index) - 1
	for at := hash(raw) & mask; s.index[at] != 0; at = (at + 1) & mask {
		looked++
		if i := int(s.index[at] - 1); bytes.Equal(s.raw(i), raw) {
			return i, looked
		}
	}
	return -1, looked + 1
}

// put fills an empty slot, or appends one.
func (s *slots) put(i int, ep netip.AddrPort) {
	if i == s.len() {
		s.packed = pack(s.packed, ep)
	} else {
		pack(s.raw(i)[:0], ep)
	}
	if s.index == nil {
		return
	}
	if s.crowded() {
		s.reindex()
		return
	}
	s.note(i)
}

// vacate empties a slot. The caller must fill it or cut it off.
func (s *slots) vacate(i int) {
	if s.index != nil {
		s.drop(i)
	}
	clear(s.raw(i))
}

// cut keeps the first n slots. The others must be empty.
func (s *slots) cut(n int) {
	s.packed = s.packed[:n*s.width]
	const sparse = 4
	if cap(s.packed) > sparse*max(len(s.packed), indexedFrom) {
		s.packed = slices.Clone(s.packed)
	}
	if (s.index != nil) != (n >= indexedFrom) || len(s.index) > 2*sparse*max(n, indexedFrom) {
		s.reindex()
	}
}

func (s *slots) clone() slots {
	return slots{width: s.width, packed: slices.Clone(s.packed), index: slices.Clone(s.index)}
}

// crowded reports whether the index must grow for another slot.
func (s *slots) crowded() bool { return 4*s.len() > 3*len(s.index) }

// reindex makes a new index with spare room for half as many slots.
func (s *slots) reindex() {
	s.index = nil
	if s.len() < indexedFrom {
		return
	}
	size := indexedFrom
	for size < 2*s.len() {
		size *= 2
	}
	s.index = make([]uint32, size)
	for i := range s.len() {
		if !s.vacant(i) {
			s.note(i)
		}
	}
}

func (s *slots) note(i int) {
	mask := len(s.index) - 1
	at := hash(s.raw(i)) & mask
	for s.index[at] != 0 {
		at = (at + 1) & mask
	}
	s.index[at] = uint32(i) + 1
}

// drop removes a slot from the index. Later entries move up if the gap would hide them.
func (s *slots) drop(i int) {
	mask := len(s.index) - 1
	at := hash(s.raw(i)) & mask
	for s.index[at] != uint32(i)+1 {
		at = (at + 1) & mask
	}
	for next := (at + 1) & mask; s.index[next] != 0; next = (next + 1) & mask {
		home := hash(s.raw(int(s.index[next]-1))) & mask
		if (next-home)&mask >= (next-at)&mask {
			s.index[at], at = s.index[next], next
		}
	}
	s.index[at] = 0
}

func hash(b []byte) int {
	const offset, prime = 2166136261, 16777619
	h := uint32(offset)
	for _, c := range b {
		h = (h ^ uint32(c)) * prime
	}
	return int(h ^ h>>15)
}
