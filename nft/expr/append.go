package expr

import (
	"encoding/binary"

	google "github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// AppendLibrary appends the expressions that most rules consist of, with
// the same bytes as google/nftables makes but without its dozen allocations
// each, which would be half the time of compiling a rule. It reports whether
// it knows the expression.
func AppendLibrary(b []byte, e google.Any) ([]byte, bool) {
	switch e := e.(type) {
	case *google.Payload:
		if e.OperationType != google.PayloadLoad || e.CsumType != 0 {
			return b, false
		}
		b, at := openExpr(b, "payload")
		b = AppendU32(b, unix.NFTA_PAYLOAD_DREG, e.DestRegister)
		b = AppendU32(b, unix.NFTA_PAYLOAD_BASE, uint32(e.Base))
		b = AppendU32(b, unix.NFTA_PAYLOAD_OFFSET, e.Offset)
		b = AppendU32(b, unix.NFTA_PAYLOAD_LEN, e.Len)
		return CloseAttr(b, at), true
	case *google.Meta:
		reg := uint16(unix.NFTA_META_DREG)
		if e.SourceRegister {
			reg = unix.NFTA_META_SREG
		}
		b, at := openExpr(b, "meta")
		b = AppendU32(b, unix.NFTA_META_KEY, uint32(e.Key))
		b = AppendU32(b, reg, e.Register)
		return CloseAttr(b, at), true
	case *google.Cmp:
		b, at := openExpr(b, "cmp")
		b = AppendU32(b, unix.NFTA_CMP_SREG, e.Register)
		b = AppendU32(b, unix.NFTA_CMP_OP, uint32(e.Op))
		b = appendData(b, unix.NFTA_CMP_DATA, e.Data)
		return CloseAttr(b, at), true
	case *google.Immediate:
		b, at := openExpr(b, "immediate")
		b = AppendU32(b, unix.NFTA_IMMEDIATE_DREG, e.Register)
		b = appendData(b, unix.NFTA_IMMEDIATE_DATA, e.Data)
		return CloseAttr(b, at), true
	case *google.Verdict:
		return appendVerdictExpr(b, e), true
	case *google.Lookup:
		return appendLookup(b, e), true
	default:
		return b, false
	}
}

func appendVerdictExpr(b []byte, e *google.Verdict) []byte {
	b, at := openExpr(b, "immediate")
	b = AppendU32(b, unix.NFTA_IMMEDIATE_DREG, unix.NFT_REG_VERDICT)
	b, data := OpenAttr(b, Nested|unix.NFTA_IMMEDIATE_DATA)
	b, verdict := OpenAttr(b, Nested|unix.NFTA_DATA_VERDICT)
	b = AppendU32(b, unix.NFTA_VERDICT_CODE, uint32(e.Kind))
	if e.Chain != "" {
		b = appendText(b, unix.NFTA_VERDICT_CHAIN, e.Chain)
	}
	return CloseAttr(CloseAttr(CloseAttr(b, verdict), data), at)
}

func appendLookup(b []byte, e *google.Lookup) []byte {
	b, at := openExpr(b, "lookup")
	if e.SourceRegister != 0 {
		b = AppendU32(b, unix.NFTA_LOOKUP_SREG, e.SourceRegister)
	}
	if e.IsDestRegSet {
		b = AppendU32(b, unix.NFTA_LOOKUP_DREG, e.DestRegister)
	}
	if e.Invert {
		b = AppendU32(b, unix.NFTA_LOOKUP_FLAGS, unix.NFT_LOOKUP_F_INV)
	}
	b = appendText(b, unix.NFTA_LOOKUP_SET, e.SetName)
	b = AppendU32(b, unix.NFTA_LOOKUP_SET_ID, e.SetID)
	return CloseAttr(b, at)
}

// openExpr appends an expression's name and begins its attributes.
func openExpr(b []byte, name string) ([]byte, int) {
	return OpenAttr(appendText(b, nftaExprName, name), Nested|nftaExprData)
}

// OpenAttr begins a nested attribute; closeAttr ends it.
func OpenAttr(b []byte, typ uint16) ([]byte, int) {
	b = binary.NativeEndian.AppendUint16(b, 0)
	return binary.NativeEndian.AppendUint16(b, typ), len(b) - 2
}

func CloseAttr(b []byte, at int) []byte {
	binary.NativeEndian.PutUint16(b[at:], uint16(len(b)-at))
	return b
}

// appendText appends a string attribute with its NUL.
func appendText(b []byte, typ uint16, s string) []byte {
	b = binary.NativeEndian.AppendUint16(b, uint16(4+len(s)+1))
	b = binary.NativeEndian.AppendUint16(b, typ)
	b = append(b, s...)
	return append(b, Zeros[:1+(-(len(s)+1)&3)]...)
}

// Zeros are the greatest padding and NUL.
const Zeros = "\x00\x00\x00\x00"
