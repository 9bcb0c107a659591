package render

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/weft-proxy/weft/frontends/services/model"
)

// maxComment is NFTNL_UDATA_COMMENT_MAXLEN.
const maxComment = 128

// A hash, the same on every node, replaces the end of a long name.
func appendComment(b []byte, name model.Key, port string) []byte {
	from := len(b)
	b = append(append(append(b, name.Namespace...), '/'), name.Name...)
	if port != "" {
		b = append(append(b, ':'), port...)
	}
	if len(b)-from <= maxComment {
		return b
	}
	sum := sha256.Sum256(b[from:])
	const digits = 8
	return hex.AppendEncode(append(b[:from+maxComment-1-digits], '~'), sum[:digits/2])
}
