package render

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/weft-proxy/weft/frontends/services/model"
)

// maxComment is what an element's comment can hold (NFTNL_UDATA_COMMENT_MAXLEN).
const maxComment = 128

// comment names a Service's port as "namespace/name:port". What does not fit is
// cut and ends in a hash of the whole, so that it stays unique and is the same
// on every node.
func comment(name model.Key, port string) string {
	s := name.Namespace + "/" + name.Name
	if port != "" {
		s += ":" + port
	}
	if len(s) <= maxComment {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	const digits = 8
	return s[:maxComment-1-digits] + "~" + hex.EncodeToString(sum[:digits/2])
}
