package datatype

import (
	"bytes"
	"fmt"
	"strings"
)

// IfNameSize is IFNAMSIZ of linux/if.h, with the NUL.
const IfNameSize = 16

const maxString = 64

// nft's strings have no escapes.
func unquote(text string) string {
	if n := len(text); n >= 2 && text[0] == '"' && text[n-1] == '"' {
		return text[1 : n-1]
	}
	return text
}

// IfNamePrefix returns the text before the star of a wildcard such as eth*. \* is a literal star;
// the star alone is not a wildcard.
func IfNamePrefix(text string) (string, bool) {
	name := unquote(text)
	if n := len(name); n > 1 && name[n-1] == '*' && name[n-2] != '\\' {
		return name[:n-1], true
	}
	return "", false
}

func appendIfName(dst []byte, text string) ([]byte, error) {
	if _, ok := IfNamePrefix(text); ok {
		return dst, fmt.Errorf("parse ifname: %s is a wildcard, which is possible only in rules and in sets with flags interval (a literal star is \\*)", text)
	}
	name := unquote(text)
	if strings.HasSuffix(name, `\*`) {
		name = name[:len(name)-2] + "*"
	}
	if err := checkText(name); err != nil || len(name) >= IfNameSize {
		return dst, fmt.Errorf("parse ifname: %q is not an interface name: want 1 to %d bytes without quotes and control characters", text, IfNameSize-1)
	}
	var padded [IfNameSize]byte
	copy(padded[:], name)
	return append(dst, padded[:]...), nil
}

func appendString(dst []byte, text string) ([]byte, error) {
	s := unquote(text)
	if err := checkText(s); err != nil {
		return dst, fmt.Errorf("parse string: %w", err)
	}
	return append(dst, s...), nil
}

// checkText rejects text that nft(8) could not print and read back.
func checkText(s string) error {
	if s == "" || len(s) > maxString {
		return fmt.Errorf("%q has %d bytes: want 1 to %d", s, len(s), maxString)
	}
	for i := range len(s) {
		if s[i] < ' ' || s[i] == '"' || s[i] == 0x7f {
			return fmt.Errorf("%q contains a control character or a quote", s)
		}
	}
	return nil
}

func formatString(_ *Type, b []byte) string {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return `"` + string(b) + `"`
}

func formatIfName(t *Type, b []byte) string {
	s := formatString(t, b)
	if name, ok := strings.CutSuffix(s, `*"`); ok {
		return name + `\*"`
	}
	return s
}
