package kernel

import (
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/attr"
	"github.com/weft-proxy/weft/nft/expr"
)

// appendStateful appends stateful statements: a single one as attribute one, several as
// a list.
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
	return attr.Close(b, at), nil
}

// decodeStateful decodes a list of stateful statements.
func decodeStateful(list attr.Reader) ([]string, error) {
	var words []string
	for list.Next() {
		text, err := expr.FormatStateful(list.Bytes())
		if err != nil {
			return nil, err
		}
		words = append(words, text)
	}
	return words, list.Err()
}
