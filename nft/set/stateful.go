package set

import (
	"fmt"

	"github.com/weft-proxy/weft/nft/expr"
)

func declaredStateful(texts []string) ([]string, error) {
	var out []string
	for _, text := range texts {
		words, err := expr.ParseStateful(text)
		if err != nil {
			return nil, fmt.Errorf("statement %q: %w", text, err)
		}
		out = append(out, words...)
	}
	return out, nil
}
