package kernel

import (
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/attr"
	"github.com/weft-proxy/weft/nft/expr"
)

// appendStateful appends statements that keep a state: one in an attribute of its
// own, several in a list.
func appendStateful(b []byte, one, list uint16, words []string) ([]byte, error) {
	if len(words) == 0 {
		return b, nil
	}
	exprs, err := expr.EncodeStateful(words)
	if err != nil {
		return b, err
	}
	if len(exprs) == 1 {
		return attr.AppendBytes(b, one|unix.NLA_F_NESTED, exprs[0]), nil
	}
	b, at := attr.OpenNested(b, list)
	for _, e := range exprs {
		b = attr.AppendBytes(b, unix.NFTA_LIST_ELEM|unix.NLA_F_NESTED, e)
	}
	b = attr.Close(b, at)
	return b, nil
}

// decodeStateful reads a list of expressions that keep a state.
func decodeStateful(list []byte) ([]string, error) {
	var words []string
	a := attr.NewReader(list)
	for a.Next() {
		text, err := expr.FormatStateful(a.Bytes())
		if err != nil {
			return nil, err
		}
		words = append(words, text)
	}
	return words, a.Err()
}
