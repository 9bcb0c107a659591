package render

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/weft-proxy/weft/frontends/policy/model"
)

const (
	maxName = 63
	// NFTNL_UDATA_COMMENT_MAXLEN
	maxComment = 128
	// NF_LOG_PREFIXLEN
	maxPrefix  = 127
	hashDigits = 10
)

type identity [sha256.Size]byte

func identify(texts ...string) identity {
	h := sha256.New()
	for _, s := range texts {
		// The length makes the bytes unambiguous.
		n := len(s)
		h.Write([]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
		h.Write([]byte(s))
	}
	return identity(h.Sum(nil))
}

// name returns "prefix-HASH-readable", cut to maxName.
func (id identity) name(prefix, readable string) string {
	var digits [2 * sha256.Size]byte
	hex.Encode(digits[:], id[:])
	out := prefix + "-" + string(digits[:hashDigits])
	if readable != "" {
		out += "-" + readable
	}
	return strings.TrimRight(out[:min(len(out), maxName)], "-./")
}

// A cut text ends with a hash of the whole, so that it is unique and equal on every node.
func shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	const digits = 8
	sum := sha256.Sum256([]byte(text))
	return text[:most-1-digits] + "~" + hex.EncodeToString(sum[:digits/2])
}

func comment(text string) string { return shorten(printable(text), maxComment) }

// printable returns the text as nft can read it in double quotes.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '"':
			return '\''
		case r < ' ' || r > '~' || r == '\\' || r == '$':
			return '?'
		}
		return r
	}, text)
}

func policyName(id model.PolicyID) string {
	switch id.Tier {
	case model.TierAdmin:
		return "admin/" + id.Name
	case model.TierBaseline:
		return "baseline/" + id.Name
	default:
		return id.Namespace + "/" + id.Name
	}
}

func policyNames(ids []model.PolicyID) string {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = policyName(id)
	}
	return strings.Join(names, ", ")
}
