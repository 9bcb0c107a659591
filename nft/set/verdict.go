package set

import (
	"encoding/binary"
	"errors"

	"github.com/weft-proxy/weft/nft/datatype"
)

// Verdict is a rule's or verdict map's decision.
type Verdict struct {
	// Code is a NFT_* or NF_* verdict, such as datatype.VerdictGoto.
	Code  int32
	Chain string
}

// String returns nft's words, such as "goto pick-3".
func (v Verdict) String() string { return datatype.Verdict.Format([]byte(VerdictData(v))) }

// VerdictData packs a verdict for Element.Data: four big-endian bytes, then the chain's name.
func VerdictData(v Verdict) string {
	b := make([]byte, 0, 4+len(v.Chain))
	b = binary.BigEndian.AppendUint32(b, uint32(v.Code))
	return string(append(b, v.Chain...))
}

// ParseVerdictData is the inverse of VerdictData. It rejects a jump or goto without chain, and a
// chain without them.
func ParseVerdictData(s string) (Verdict, error) {
	if len(s) < 4 {
		return Verdict{}, errors.New("parse verdict data: want four bytes at least")
	}
	v := Verdict{Code: int32(binary.BigEndian.Uint32([]byte(s[:4]))), Chain: s[4:]}
	if jumps := v.Code == datatype.VerdictJump || v.Code == datatype.VerdictGoto; jumps != (v.Chain != "") {
		return Verdict{}, errors.New("parse verdict data: a jump or goto, and nothing else, has a chain")
	}
	return v, nil
}
