package compile

import (
	"github.com/weft-proxy/weft/nft/expr"
)

// Encode returns the payload of NFTA_RULE_EXPRESSIONS. The rule's anonymous
// set number i, counted from 1, gets the transaction number base+i. The
// expressions were marshalled when the rule was compiled, so this is a copy.
func (r *Rule) Encode(base uint32) ([]byte, error) {
	if r.encoded == nil {
		// A Rule that was put together by hand.
		encoded, err := expr.Encode(uint8(r.Family), r.Exprs)
		if err != nil {
			return nil, err
		}
		return encoded.At(base), nil
	}
	return r.encoded.At(base), nil
}
