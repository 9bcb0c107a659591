package compile

import (
	"github.com/weft-proxy/weft/nft/datatype"
)

// layer is a protocol layer of a packet. Minus one, it is the kernel's
// payload base (NFT_PAYLOAD_LL_HEADER, ...); nft stores it in userdata.
type layer uint8

const (
	layerNone layer = iota
	layerLink
	layerNetwork
	layerTransport
	// layerInner is what the transport header is in front of. No header of
	// this vocabulary is in it; raw payload can be.
	layerInner
	layers
)

// header is a protocol: the fields of its header and the protocols that it
// carries. Headers are compared by pointer.
type header struct {
	name  string
	layer layer
	// key is the meta key that tells what the header carries, as nft uses it
	// for implicit dependencies. Where it is empty the header's own field
	// tells, if it has one.
	key    string
	uppers []upper
	fields []field
	// length is the size of the header in bits, of those that can carry
	// another header of their layer.
	length uint32
	// checksum says how the kernel corrects the checksum when a rule changes
	// the header.
	checksum checksum
	// raw headers are used without knowing the protocol ("th").
	raw bool
}

// checksum is a kind of checksum (enum nft_payload_csum_types) and its place in
// the header, in bytes. The zero value means that there is none.
type checksum struct{ kind, offset uint32 }

// The kinds of checksums.
const (
	checksumInet = 1
	checksumSCTP = 2
)

// upper is a protocol that a header carries: its number in the key, and the
// name of its header.
type upper struct {
	num  uint64
	name string
}

// field is a field of a header. Offsets and widths are in bits.
type field struct {
	name         string
	typ          *datatype.Type
	offset, bits uint32
	// protocol is true for the field that names what the header carries.
	protocol bool
	// pseudo is true for fields that the checksums of transport headers cover.
	pseudo bool
	// icmpTypes are the types of ICMP messages that have the field; the rule
	// must match one of them.
	icmpTypes []uint64
}

// partial reports whether the field does not fill its bytes.
func (f *field) partial() bool { return f.offset%8 != 0 || f.bits%8 != 0 }

// number returns the number of a protocol that h carries.
func (h *header) number(up *header) (uint64, bool) {
	for _, u := range h.uppers {
		if u.name == up.name {
			return u.num, true
		}
	}
	return 0, false
}

// upper returns the protocol with a number, or nil.
func (h *header) upper(num uint64) *header {
	for _, u := range h.uppers {
		if u.num == num {
			return headerByName(u.name)
		}
	}
	return nil
}

// field returns the field of a name, or nil.
func (h *header) field(name string) *field {
	for i := range h.fields {
		if h.fields[i].name == name {
			return &h.fields[i]
		}
	}
	return nil
}

// protocolField returns the field that names what the header carries, or nil.
func (h *header) protocolField() *field {
	for i := range h.fields {
		if h.fields[i].protocol {
			return &h.fields[i]
		}
	}
	return nil
}

// headerByName returns the header that a selector names, or nil.
func headerByName(name string) *header {
	for _, h := range [...]*header{
		&headerTCP, &headerIP, &headerUDP, &headerIP6, &headerTH, &headerSCTP, &headerICMP, &headerICMPv6, &headerEther, &headerVLAN,
		&headerARP, &headerIGMP, &headerUDPLite, &headerDCCP, &headerAH, &headerESP, &headerComp,
	} {
		if h.name == name {
			return h
		}
	}
	return nil
}

// headerRaw is that of raw payload, headerUnknown stands for a protocol that
// has no header here.
var (
	headerRaw     = header{name: "raw payload", raw: true}
	headerUnknown = header{name: "another protocol"}
)
