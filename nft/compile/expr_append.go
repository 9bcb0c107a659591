package compile

import (
	"encoding/binary"

	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// appendKernelExpr appends the expressions that most rules consist of, with
// the same bytes as google/nftables makes but without its dozen allocations
// each, which would be half the time of compiling a rule. It reports whether
// it knows the expression.
func appendKernelExpr(b []byte, e expr.Any) ([]byte, bool) {
	switch e := e.(type) {
	case *expr.Payload:
		if e.OperationType != expr.PayloadLoad || e.CsumType != 0 {
			return b, false
		}
		b, at := openExpr(b, "payload")
		b = appendU32(b, unix.NFTA_PAYLOAD_DREG, e.DestRegister)
		b = appendU32(b, unix.NFTA_PAYLOAD_BASE, uint32(e.Base))
		b = appendU32(b, unix.NFTA_PAYLOAD_OFFSET, e.Offset)
		b = appendU32(b, unix.NFTA_PAYLOAD_LEN, e.Len)
		return closeAttr(b, at), true
	case *expr.Meta:
		reg := uint16(unix.NFTA_META_DREG)
		if e.SourceRegister {
			reg = unix.NFTA_META_SREG
		}
		b, at := openExpr(b, "meta")
		b = appendU32(b, unix.NFTA_META_KEY, uint32(e.Key))
		b = appendU32(b, reg, e.Register)
		return closeAttr(b, at), true
	case *expr.Cmp:
		b, at := openExpr(b, "cmp")
		b = appendU32(b, unix.NFTA_CMP_SREG, e.Register)
		b = appendU32(b, unix.NFTA_CMP_OP, uint32(e.Op))
		b = appendData(b, unix.NFTA_CMP_DATA, e.Data)
		return closeAttr(b, at), true
	case *expr.Immediate:
		b, at := openExpr(b, "immediate")
		b = appendU32(b, unix.NFTA_IMMEDIATE_DREG, e.Register)
		b = appendData(b, unix.NFTA_IMMEDIATE_DATA, e.Data)
		return closeAttr(b, at), true
	case *expr.Verdict:
		return appendVerdictExpr(b, e), true
	case *expr.Lookup:
		return appendLookup(b, e), true
	default:
		return b, false
	}
}

func appendVerdictExpr(b []byte, e *expr.Verdict) []byte {
	b, at := openExpr(b, "immediate")
	b = appendU32(b, unix.NFTA_IMMEDIATE_DREG, unix.NFT_REG_VERDICT)
	b, data := openAttr(b, nlaNested|unix.NFTA_IMMEDIATE_DATA)
	b, verdict := openAttr(b, nlaNested|unix.NFTA_DATA_VERDICT)
	b = appendU32(b, unix.NFTA_VERDICT_CODE, uint32(e.Kind))
	if e.Chain != "" {
		b = appendText(b, unix.NFTA_VERDICT_CHAIN, e.Chain)
	}
	return closeAttr(closeAttr(closeAttr(b, verdict), data), at)
}

func appendLookup(b []byte, e *expr.Lookup) []byte {
	b, at := openExpr(b, "lookup")
	if e.SourceRegister != 0 {
		b = appendU32(b, unix.NFTA_LOOKUP_SREG, e.SourceRegister)
	}
	if e.IsDestRegSet {
		b = appendU32(b, unix.NFTA_LOOKUP_DREG, e.DestRegister)
	}
	if e.Invert {
		b = appendU32(b, unix.NFTA_LOOKUP_FLAGS, unix.NFT_LOOKUP_F_INV)
	}
	b = appendText(b, unix.NFTA_LOOKUP_SET, e.SetName)
	b = appendU32(b, unix.NFTA_LOOKUP_SET_ID, e.SetID)
	return closeAttr(b, at)
}

// openExpr appends an expression's name and begins its attributes.
func openExpr(b []byte, name string) ([]byte, int) {
	return openAttr(appendText(b, nftaExprName, name), nlaNested|nftaExprData)
}

// openAttr begins a nested attribute; closeAttr ends it.
func openAttr(b []byte, typ uint16) ([]byte, int) {
	b = binary.NativeEndian.AppendUint16(b, 0)
	return binary.NativeEndian.AppendUint16(b, typ), len(b) - 2
}

func closeAttr(b []byte, at int) []byte {
	binary.NativeEndian.PutUint16(b[at:], uint16(len(b)-at))
	return b
}

// appendText appends a string attribute with its NUL.
func appendText(b []byte, typ uint16, s string) []byte {
	b = binary.NativeEndian.AppendUint16(b, uint16(4+len(s)+1))
	b = binary.NativeEndian.AppendUint16(b, typ)
	b = append(b, s...)
	return append(b, zeros[:1+(-(len(s)+1)&3)]...)
}

// zeros are the greatest padding and NUL.
const zeros = "\x00\x00\x00\x00"
