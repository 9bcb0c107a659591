package compile

import (
	"fmt"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/userdata"
)

// Rule is a compiled rule: immutable, independent of a chain position, and committed any number of
// times.
type Rule struct {
	Family nft.Family
	// canonical form, without the comment
	Text    string
	Comment string
	// In kernel order. A Lookup or Dynset on Anonymous[i] has SetID i+1 and a name such as
	// "__set%d". SetID is 0 for named sets.
	Exprs []expr.Expr
	// in SetID order
	Anonymous []set.Anonymous
	// targets of jump and goto, also in anonymous verdict maps; sorted, without repeats
	Chains []string
	// named sets and maps, sorted, without repeats
	Sets []string
	// sorted, without repeats
	Objects    []object.Ref
	Flowtables []string
	// map entries made by packets, without repeats
	Writes  []Write
	Effects Effects
	// Fingerprint identifies family, expressions, anonymous sets and comment, not the owner. With
	// equal fingerprints, the kernel's rule can stay, with its handle and counters. The userdata stores
	// it, so it must not change between versions of weft with the same compiled bytes.
	Fingerprint userdata.Fingerprint

	encoded expr.Encoded
}

// Encode returns the payload of NFTA_RULE_EXPRESSIONS. Anonymous[i] gets transaction number
// base+i+1. Only a Rule that CompileRule did not return can fail.
func (r *Rule) Encode(base uint32) ([]byte, error) {
	if r.encoded.Bytes == nil && len(r.Exprs) > 0 {
		// put together by hand
		encoded, err := expr.Encode(r.Exprs)
		if err != nil {
			return nil, err
		}
		return encoded.At(base), nil
	}
	return r.encoded.At(base), nil
}

// UserData returns the comment as nft stores it, then the fingerprint and owner, which nft skips.
// An owner of more than [userdata.MaxOwner] bytes is an error.
func (r *Rule) UserData(owner string) ([]byte, error) {
	if len(owner) > userdata.MaxOwner {
		return nil, fmt.Errorf("encode rule userdata: owner %.40q... has %d bytes: want at most %d", owner, len(owner), userdata.MaxOwner)
	}
	b := make([]byte, 0, len(r.Comment)+len(owner)+len(r.Fingerprint)+7)
	b, err := userdata.AppendComment(b, r.Comment)
	if err != nil {
		return nil, fmt.Errorf("encode rule userdata: %w", err)
	}
	b = append(b, userdata.UdataFingerprint, byte(len(r.Fingerprint)))
	b = append(b, r.Fingerprint[:]...)
	b = append(b, userdata.UdataOwner, byte(len(owner)))
	return append(b, owner...), nil
}
