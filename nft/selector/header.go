package selector

import (
	"strings"

	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/syntax"
)

// Layer is a protocol layer of a packet. Minus one, it is the kernel's payload base (NFT_PAYLOAD_LL_HEADER,
// ...); nft stores it in userdata.
type Layer uint8

const (
	layerNone Layer = iota
	LayerLink
	LayerNetwork
	LayerTransport
	// LayerInner is the data after the transport header. Only raw payload can be in it.
	LayerInner
	// Layers is the number of layers, including none.
	Layers
)

// Header is a protocol: its fields and the protocols above it. Headers are compared by pointer. Most have
// no variable: HeaderByName returns them.
type Header struct {
	Name string
	// Desc is nft's number of the protocol in a typeof declaration (enum proto_desc_id of its proto.h).
	// Fields count from 1, in the order of Fields.
	Desc  uint32
	Layer Layer
	// Key is the meta key with the number of the next protocol, as nft uses it for implicit dependencies.
	// If it is empty, the number is in a field of the header, if any.
	Key    string
	Uppers []upper
	Fields []Field
	// Length is the size of the header in bits if it can carry another header of its layer, else 0.
	Length uint32
	// Checksum is the kernel's correction of the checksum after a change of the header.
	Checksum checksum
	// Raw headers are used without knowledge of the protocol ("th").
	Raw bool
}

// checksum is a kind of checksum (enum nft_payload_csum_types) and its place in the header, in bytes. The
// zero value means no checksum.
type checksum struct{ Kind, Offset uint32 }

const (
	checksumInet = 1
	checksumSCTP = 2
)

// upper is a protocol in a header: its number in the key, and the name of its header.
type upper struct {
	Num  uint64
	Name string
}

// Field is a field of a header. Offsets and widths are in bits.
type Field struct {
	Name         string
	Type         *datatype.Type
	Offset, Bits uint32
	// Protocol is true for the number of the next protocol.
	Protocol bool
	// Pseudo is true for fields of the pseudo header, which is part of transport checksums.
	Pseudo bool
	// ICMPTypes are the types of ICMP messages that have the field; the rule must match one of these types.
	ICMPTypes []uint64
}

// Partial reports whether the field does not fill its bytes.
func (f *Field) Partial() bool { return f.Offset%8 != 0 || f.Bits%8 != 0 }

// Number returns the number of the protocol up in the Protocol field or the Key of h. It returns false if h
// does not carry it.
func (h *Header) Number(up *Header) (uint64, bool) {
	for _, u := range h.Uppers {
		if u.Name == up.Name {
			return u.Num, true
		}
	}
	return 0, false
}

// Upper returns the protocol with the number num in the Protocol field or Key of h, or nil if h does not
// carry it or it has no Header.
func (h *Header) Upper(num uint64) *Header {
	for _, u := range h.Uppers {
		if u.Num == num {
			return HeaderByName(u.Name)
		}
	}
	return nil
}

// Field returns a field by name, or nil.
func (h *Header) Field(name string) *Field {
	return find(h.Fields, func(f *Field) bool { return f.Name == name })
}

// ProtocolField returns the field with the number of the next protocol, or nil.
func (h *Header) ProtocolField() *Field {
	return find(h.Fields, func(f *Field) bool { return f.Protocol })
}

// HeaderByName returns the header of a word in a rule, such as "tcp", or nil. HeaderInet, HeaderLink and
// HeaderService have no such word.
func HeaderByName(name string) *Header {
	for _, h := range Headers {
		if h.Name == name {
			return h
		}
	}
	return nil
}

// FieldOf returns the header and field of a selector.
func FieldOf(x *syntax.Payload) (*Header, *Field, *syntax.Error) {
	h := HeaderByName(x.Proto)
	if h == nil {
		return nil, nil, syntax.ErrorAt(x.Pos, "unknown header %q", x.Proto)
	}
	if f := h.Field(x.Field); f != nil {
		return h, f, nil
	}
	return nil, nil, syntax.ErrorAt(x.FieldPos, "unknown field %q of %s: want %s", x.Field, h.Name, names(h.Fields, func(f Field) string { return f.Name }))
}

func names[T any](rows []T, name func(T) string) string {
	var list []string
	for _, row := range rows {
		list = append(list, name(row))
	}
	return strings.Join(list, ", ")
}

// Headers are the headers that selectors name, the most frequent first.
var Headers = [...]*Header{
	&HeaderTCP, &HeaderIP, &headerUDP, &HeaderIP6, &HeaderTH, &headerSCTP, &HeaderICMP, &HeaderICMPv6, &HeaderEther, &headerVLAN,
	&HeaderARP, &HeaderIGMP, &headerUDPLite, &headerDCCP, &headerAH, &headerESP, &headerComp,
}

// HeaderRaw is the header of raw payload. HeaderUnknown is for a protocol without header in this package.
var (
	HeaderRaw     = Header{Name: "raw payload", Raw: true}
	HeaderUnknown = Header{Name: "another protocol"}
)

// find returns the first row of a table for which ok returns true, or nil.
func find[T any](table []T, ok func(*T) bool) *T {
	for i := range table {
		if ok(&table[i]) {
			return &table[i]
		}
	}
	return nil
}
