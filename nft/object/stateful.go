package object

import (
	google "github.com/google/nftables/expr"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/syntax"
)

// Counters, quotas and limits have the attributes of the expressions of the same
// name.

func encodeStateful(family nft.Family, body syntax.ObjectBody) ([]byte, error) {
	e, err := expr.NewStateful(body.(syntax.Stmt))
	if err != nil {
		return nil, err
	}
	return google.MarshalExprData(uint8(family), e.Any)
}

func encodeLimit(family nft.Family, body syntax.ObjectBody) ([]byte, error) {
	if body.(*syntax.Limit).Per == "" {
		return nil, syntax.ErrorAt(start, "a limit has a rate: write one such as rate 10/second")
	}
	return encodeStateful(family, body)
}

// decodeStateful returns the decoder of the expression with the given name.
func decodeStateful(name string) func(nft.Family, attributes) (syntax.ObjectBody, error) {
	return func(_ nft.Family, a attributes) (syntax.ObjectBody, error) {
		s, err := expr.DecodeStateful(name, a.data)
		if err != nil {
			return nil, err
		}
		return s.(syntax.ObjectBody), nil
	}
}

// alignCounters ignores what has been counted.
func alignCounters(a, b syntax.ObjectBody) {
	*a.(*syntax.Counter) = syntax.Counter{}
	*b.(*syntax.Counter) = syntax.Counter{}
}

// alignQuotas ignores what has been used.
func alignQuotas(a, b syntax.ObjectBody) {
	a.(*syntax.Quota).UsedUnit = ""
	b.(*syntax.Quota).UsedUnit = ""
}
