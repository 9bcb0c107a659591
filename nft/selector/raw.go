package selector

import (
	"slices"

	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/syntax"
)

// the kernel's widest comparison, in bits
const maxRaw = 128

// RawField returns HeaderTH and a port for 16 bits at offset 0 or 16 of th, else HeaderRaw and an
// integer. It rejects an unknown base, 0 bits, and more than 128.
func RawField(x *syntax.RawPayload) (*Header, *Field, Layer, *syntax.Error) {
	l := Layer(slices.Index(rawBases[:], x.Base))
	f := &Field{Type: datatype.Integer, Offset: x.Offset, Bits: x.Bits}
	switch {
	case l > LayerInner || x.Base == "":
		return nil, nil, 0, syntax.ErrorAt(x.Pos, "unknown base %q of raw payload: want ll, nh, th or ih", x.Base)
	case x.Bits == 0:
		return nil, nil, 0, syntax.ErrorAt(x.Pos, "raw payload of 0 bits has no value")
	case x.Bits > maxRaw, x.Offset%8+x.Bits > maxRaw:
		return nil, nil, 0, syntax.ErrorAt(x.Pos, "raw payload of %d bits is too wide: at most %d are possible, in whole bytes", x.Bits, maxRaw)
	case x.Offset/8 > maxRawOffset:
		return nil, nil, 0, syntax.ErrorAt(x.Pos, "offset %d of raw payload is too large: the greatest is %d", x.Offset, maxRawOffset*8+7)
	case l == LayerTransport && x.Bits == 16 && x.Offset <= 16 && x.Offset%16 == 0:
		return &HeaderTH, &HeaderTH.Fields[x.Offset/16], l, nil
	}
	return &HeaderRaw, f, l, nil
}

var rawBases = [...]string{"", "ll", "nh", "th", "ih"}

// the kernel's greatest offset, in bytes
const maxRawOffset = 1<<16 - 1
