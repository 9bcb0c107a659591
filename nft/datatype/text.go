package datatype

import (
	"bytes"
	"fmt"
	"strings"
)

// IfNameSize is IFNAMSIZ of linux/if.h: an interface's name has at most one
// byte less, for the NUL at its end.
const IfNameSize = 16

// maxString is the longest register-sized value.
const maxString = 64

// unquote takes the double quotes off a string; nft's strings have no escapes.
func unquote(text string) string {
	if n := len(text); n >= 2 && text[0] == '"' && text[n-1] == '"' {
		return text[1 : n-1]
	}
	return text
}

// IfNamePrefix reports whether text, with or without quotes, is a wildcard
// such as eth*, and returns what comes before the star. A star that is meant
// literally is written \*.
func IfNamePrefix(text string) (string, bool) {
	name := unquote(text)
	if n := len(name); n > 1 && name[n-1] == '*' && name[n-2] != '\\' {
		return name[:n-1], true
	}
	return "", false
}

func appendIfName(dst []byte, text string) ([]byte, error) {
	if _, ok := IfNamePrefix(text); ok {
		return dst, fmt.Errorf("parse ifname: %s is a wildcard: it is possible in sets with flags interval and in rules (a literal star is \\*)", text)
	}
	name := unquote(text)
	if strings.HasSuffix(name, `\*`) {
		name = name[:len(name)-2] + "*"
	}
	if err := checkText(name); err != nil || len(name) >= IfNameSize {
		return dst, fmt.Errorf("parse ifname: %q is no interface name: want 1 to %d bytes without spaces or slashes", text, IfNameSize-1)
	}
	if strings.ContainsAny(name, " \t/") {
		return dst, fmt.Errorf("parse ifname: %q is no interface name: want 1 to %d bytes without spaces or slashes", text, IfNameSize-1)
	}
	dst = append(dst, name...)
	for range IfNameSize - len(name) {
		dst = append(dst, 0)
	}
	return dst, nil
}

func appendString(dst []byte, text string) ([]byte, error) {
	s := unquote(text)
	if err := checkText(s); err != nil {
		return dst, fmt.Errorf("parse string: %w", err)
	}
	return append(dst, s...), nil
}

// checkText refuses what nft(8) could not print and read back.
func checkText(s string) error {
	if s == "" || len(s) > maxString {
		return fmt.Errorf("%q has %d bytes: want 1 to %d", s, len(s), maxString)
	}
	for i := range len(s) {
		if s[i] < ' ' || s[i] == '"' || s[i] == 0x7f {
			return fmt.Errorf("%q holds a control character or a quote", s)
		}
	}
	return nil
}

func formatString(b []byte) string {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return `"` + string(b) + `"`
}

func formatIfName(b []byte) string {
	s := formatString(b)
	if name, ok := strings.CutSuffix(s, `*"`); ok {
		return name + `\*"`
	}
	return s
}
