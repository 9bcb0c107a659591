package selector

import (
	"strings"

	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/syntax"
)

// Layer is the kernel's payload base plus one (NFT_PAYLOAD_LL_HEADER, ...), also in nft's userdata.
type Layer uint8

const (
	layerNone Layer = iota
	LayerLink
	LayerNetwork
	LayerTransport
	// LayerInner is the data after the transport header, only for raw payload.
	LayerInner
	// Layers counts the layers, including layerNone.
	Layers
)

// Header is a protocol with its fields and upper protocols, compared by pointer.
type Header struct {
	Name string
	// in a typeof declaration (enum proto_desc_id); fields count from 1
	Desc  uint32
	Layer Layer
	// meta key with the next protocol's number; if empty, the number may be in a field
	Key    string
	Uppers []upper
	Fields []Field
	// in bits if it can carry a header of the same layer, else 0
	Length uint32
	// kernel's correction after a change
	Checksum checksum
	// no known protocol required ("th")
	Raw bool
}

// Kind is enum nft_payload_csum_types, Offset in bytes. Zero means no checksum.
type checksum struct{ Kind, Offset uint32 }

const (
	checksumInet = 1
	checksumSCTP = 2
)

type upper struct {
	Num  uint64
	Name string
}

// Field is a field of a header, with Offset and Bits in bits.
type Field struct {
	Name         string
	Type         *datatype.Type
	Offset, Bits uint32
	// the next protocol's number, or the message type of ICMP
	Protocol bool
	// in the pseudo header, which transport checksums cover
	Pseudo bool
	// message types with the field; the rule must match one
	ICMPTypes []uint64
}

// Partial reports whether the field does not fill its bytes.
func (f *Field) Partial() bool { return f.Offset%8 != 0 || f.Bits%8 != 0 }

// Number returns up's number in the Protocol field or Key, or false.
func (h *Header) Number(up *Header) (uint64, bool) {
	for _, u := range h.Uppers {
		if u.Name == up.Name {
			return u.Num, true
		}
	}
	return 0, false
}

// Upper returns the protocol num, or nil.
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

// ProtocolField returns the Protocol field, or nil.
func (h *Header) ProtocolField() *Field {
	return find(h.Fields, func(f *Field) bool { return f.Protocol })
}

// HeaderByName returns the header of a word in a rule, or nil.
func HeaderByName(name string) *Header {
	for _, h := range Headers {
		if h.Name == name {
			return h
		}
	}
	return nil
}

// FieldOf returns a selector's header and field.
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

// Headers are named by selectors, the most frequent first.
var Headers = [...]*Header{
	&HeaderTCP, &HeaderIP, &headerUDP, &HeaderIP6, &HeaderTH, &headerSCTP, &HeaderICMP, &HeaderICMPv6, &HeaderEther, &headerVLAN,
	&HeaderARP, &HeaderIGMP, &headerUDPLite, &headerDCCP, &headerAH, &headerESP, &headerComp,
}

// HeaderRaw is for raw payload, HeaderUnknown for a protocol without header.
var (
	HeaderRaw     = Header{Name: "raw payload", Raw: true}
	HeaderUnknown = Header{Name: "another protocol"}
)

func find[T any](table []T, ok func(*T) bool) *T {
	for i := range table {
		if ok(&table[i]) {
			return &table[i]
		}
	}
	return nil
}
