package datatype

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
)

// enum nft_verdicts and the NF_* verdicts of linux/netfilter.h
const (
	VerdictDrop     int32 = 0
	VerdictAccept   int32 = 1
	VerdictContinue int32 = -1
	VerdictBreak    int32 = -2
	VerdictJump     int32 = -3
	VerdictGoto     int32 = -4
	VerdictReturn   int32 = -5
)

// MaxName is the longest name in bytes (NFT_NAME_MAXLEN without NUL).
const MaxName = 255

// "break" is only printed
var verdicts = []struct {
	word string
	code int32
}{
	{"drop", VerdictDrop}, {"accept", VerdictAccept}, {"continue", VerdictContinue}, {"return", VerdictReturn},
	{"jump", VerdictJump}, {"goto", VerdictGoto}, {"break", VerdictBreak},
}

// VerdictCode returns false for "break", which rules cannot contain.
func VerdictCode(word string) (int32, bool) {
	for _, v := range verdicts {
		if v.word == word && v.code != VerdictBreak {
			return v.code, true
		}
	}
	return 0, false
}

func hasChain(code int32) bool { return code == VerdictJump || code == VerdictGoto }

// appendVerdict appends four big-endian bytes, then the chain of a jump or goto.
func appendVerdict(dst []byte, text string) ([]byte, error) {
	word, chain, _ := strings.Cut(text, " ")
	chain = strings.TrimLeft(chain, " \t")
	code, ok := VerdictCode(word)
	if !ok {
		return dst, fmt.Errorf("parse verdict: unknown verdict %q: want accept, drop, continue, return, jump CHAIN or goto CHAIN", text)
	}
	switch {
	case hasChain(code) && chain == "":
		return dst, fmt.Errorf("parse verdict: %s requires the name of a chain", word)
	case hasChain(code):
		if err := CheckName(chain); err != nil {
			return dst, fmt.Errorf("parse verdict: %s: chain %w", word, err)
		}
	case chain != "":
		return dst, fmt.Errorf("parse verdict: unexpected %q after %s", chain, word)
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(code))
	return append(dst, chain...), nil
}

// CheckName requires 1 to MaxName bytes: a letter, _ or ., then letters, digits and any of _ . - /.
func CheckName(name string) error {
	if len(name) == 0 || len(name) > MaxName {
		return fmt.Errorf("name %.40q has %d bytes: want 1 to %d", name, len(name), MaxName)
	}
	for i := range len(name) {
		c := name[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '_', c == '.':
		case i > 0 && (c >= '0' && c <= '9' || c == '/' || c == '-'):
		default:
			return fmt.Errorf("name %q: unexpected %q at byte %d: want a letter, _ or ., then letters, digits and any of _ . - /", name, c, i)
		}
	}
	return nil
}

func formatVerdict(_ *Type, b []byte) string {
	if len(b) < 4 {
		return rawHex(b)
	}
	code := int32(binary.BigEndian.Uint32(b))
	for _, v := range verdicts {
		switch {
		case v.code == code && hasChain(code):
			return v.word + " " + string(b[4:])
		case v.code == code:
			return v.word
		}
	}
	return strconv.FormatInt(int64(code), 10)
}
