package selector

import (
	"strings"

	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/syntax"
)

// Layer is a protocol layer of a packet. Minus one, it is the kernel's
// payload base (NFT_PAYLOAD_LL_HEADER, ...); nft stores it in userdata.
type Layer uint8

const (
	layerNone Layer = iota
	LayerLink
	LayerNetwork
	LayerTransport
	// LayerInner is the data after the transport header. It has no Header, but raw payload
	// can be in it.
	LayerInner
	// Layers is the number of layers, including none.
	Layers
)

// Header is a protocol: the fields of its header and the protocols that it
// carries. Headers are compared by pointer. Most have no variable of their own:
// HeaderByName returns them.
type Header struct {
	Name string
	// Desc is how nft numbers the protocol in a typeof declaration (enum proto_desc_id of
	// its proto.h). It numbers the fields from 1, in the order of Fields.
	Desc  uint32
	Layer Layer
	// Key is the meta key that has the number of the next protocol, as nft uses it for
	// implicit dependencies. If it is empty, the number is in a field of the header, if
	// there is one.
	Key    string
	Uppers []upper
	Fields []Field
	// Length is the size of the header in bits if it can carry another header of its layer,
	// else 0.
	Length uint32
	// Checksum says how the kernel corrects the checksum when a rule changes
	// the header.
	Checksum checksum
	// Raw headers are used without knowing the protocol ("th").
	Raw bool
}

// checksum is a kind of checksum (enum nft_payload_csum_types) and its place in
// the header, in bytes. The zero value means that there is none.
type checksum struct{ Kind, Offset uint32 }

// The kinds of checksums.
const (
	checksumInet = 1
	checksumSCTP = 2
)

// upper is a protocol that a header carries: its number in the key, and the
// name of its header.
type upper struct {
	Num  uint64
	Name string
}

// Field is a field of a header. Offsets and widths are in bits.
type Field struct {
	Name         string
	Type         *datatype.Type
	Offset, Bits uint32
	// Protocol is true for the field that has the number of the next protocol.
	Protocol bool
	// Pseudo is true for the fields of the pseudo header, which the checksums of transport
	// headers cover.
	Pseudo bool
	// ICMPTypes are the types of ICMP messages that have the field; the rule
	// must match one of them.
	ICMPTypes []uint64
}

// Partial reports whether the field does not fill its bytes.
func (f *Field) Partial() bool { return f.Offset%8 != 0 || f.Bits%8 != 0 }

// Number returns the number that the protocol up has in the Protocol field or the Key of h;
// false if h does not carry it.
func (h *Header) Number(up *Header) (uint64, bool) {
	for _, u := range h.Uppers {
		if u.Name == up.Name {
			return u.Num, true
		}
	}
	return 0, false
}

// Upper returns the protocol that h carries if its Protocol field or Key is num. It is nil
// if h carries none of that number, or if the protocol has no Header.
func (h *Header) Upper(num uint64) *Header {
	for _, u := range h.Uppers {
		if u.Num == num {
			return HeaderByName(u.Name)
		}
	}
	return nil
}

// Field returns the field of a name, or nil.
func (h *Header) Field(name string) *Field {
	return find(h.Fields, func(f *Field) bool { return f.Name == name })
}

// ProtocolField returns the field that has the number of the next protocol, or nil.
func (h *Header) ProtocolField() *Field {
	return find(h.Fields, func(f *Field) bool { return f.Protocol })
}

// HeaderByName returns the header of a word in a rule, such as "tcp", or nil. HeaderInet,
// HeaderLink and HeaderService have no such word.
func HeaderByName(name string) *Header {
	for _, h := range Headers {
		if h.Name == name {
			return h
		}
	}
	return nil
}

// FieldOf returns the field of a header that a rule names.
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

// names lists the names of rows.
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

// HeaderRaw is the header of raw payload. HeaderUnknown is for a protocol that has no header
// in this package.
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
