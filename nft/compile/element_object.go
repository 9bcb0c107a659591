package compile

import (
	"fmt"
	"strings"

	"github.com/weft-proxy/weft/nft/datatype"
)

// appendObjectName appends the name of an object, which may be quoted, as nft
// lists it.
func appendObjectName(b []byte, text string) ([]byte, error) {
	name := strings.TrimSpace(text)
	if len(name) > 1 && name[0] == '"' && name[len(name)-1] == '"' {
		name = name[1 : len(name)-1]
	}
	if err := datatype.CheckName(name); err != nil {
		return b, fmt.Errorf("object: %w", err)
	}
	return append(b, name...), nil
}
