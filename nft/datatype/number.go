package datatype

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

func (t *Type) littleEndian() bool {
	return t.Order == HostEndian && binary.NativeEndian.Uint16([]byte{1, 0}) == 1
}

func startsWithDigit(text string) bool { return text != "" && text[0] >= '0' && text[0] <= '9' }

// Uint returns the number in b, without bytes above eight.
func (t *Type) Uint(b []byte) uint64 {
	var v uint64
	if t.littleEndian() {
		for i := len(b) - 1; i >= 0; i-- {
			v = v<<8 | uint64(b[i])
		}
		return v
	}
	for _, c := range b {
		v = v<<8 | uint64(c)
	}
	return v
}

// AppendUint appends the low n bytes of v in the type's byte order.
func (t *Type) AppendUint(dst []byte, v uint64, n int) []byte {
	little := t.littleEndian()
	for i := range n {
		shift := 8 * (n - 1 - i)
		if little {
			shift = 8 * i
		}
		if shift >= 64 {
			dst = append(dst, 0)
			continue
		}
		dst = append(dst, byte(v>>shift))
	}
	return dst
}

// ParseUint parses a number, a symbol, or flags joined by |, without a check of the type.
func (t *Type) ParseUint(text string) (uint64, error) {
	if t.Bitmask && strings.IndexByte(text, '|') >= 0 {
		var v uint64
		for part := range strings.SplitSeq(text, "|") {
			p, err := t.parseOne(strings.TrimSpace(part))
			if err != nil {
				return 0, err
			}
			v |= p
		}
		return v, nil
	}
	return t.parseOne(text)
}

func (t *Type) parseOne(text string) (uint64, error) {
	if startsWithDigit(text) {
		if v, ok := ParseNumber(text, 64); ok {
			if t.Bits != 0 && t.Bits < 64 && v>>t.Bits != 0 {
				return 0, fmt.Errorf("parse %s: %s is out of range: the greatest is %d", t.Name, text, uint64(1)<<t.Bits-1)
			}
			return v, nil
		}
	}
	// nft quotes the names of machine tables
	if v, ok := t.symbolValue(unquote(text)); ok {
		return v, nil
	}
	return 0, fmt.Errorf("parse %s: unknown name %q: want %s", t.Name, text, t.expected())
}

// ParseNumber parses decimal, 0x-hexadecimal or octal of at most the given bits.
func ParseNumber(text string, bits int) (uint64, bool) {
	base, digits := 10, text
	switch {
	case strings.HasPrefix(text, "0x"), strings.HasPrefix(text, "0X"):
		base, digits = 16, text[2:]
	case len(text) > 1 && text[0] == '0':
		base, digits = 8, text[1:]
	}
	v, err := strconv.ParseUint(digits, base, bits)
	return v, err == nil
}

func (t *Type) appendInteger(dst []byte, text string) ([]byte, error) {
	v, err := t.ParseUint(text)
	if err != nil {
		return dst, err
	}
	n := t.Len()
	if n == 0 {
		n = max(1, (bits.Len64(v)+7)/8)
	}
	return t.AppendUint(dst, v, n), nil
}

func (t *Type) formatInteger(b []byte) string {
	if len(b) > 8 {
		return rawHex(b)
	}
	v := t.Uint(b)
	if name, ok := lookupValue(t.Symbols, v); ok {
		if t == IfIndex || t == Realm || t == DevGroup || t == Day {
			return strconv.Quote(name)
		}
		return name
	}
	if t.Bitmask && v != 0 {
		return t.formatFlags(v)
	}
	return t.formatNumber(v)
}

// FormatNumber is Format without names, as nft prints the ends of ranges.
func (t *Type) FormatNumber(b []byte) string {
	if t.kind != kindInteger || len(b) != t.Len() || len(b) == 0 || len(b) > 8 {
		return t.Format(b)
	}
	return t.formatNumber(t.Uint(b))
}

func (t *Type) formatNumber(v uint64) string {
	if t.format == "" {
		return strconv.FormatUint(v, 10)
	}
	return fmt.Sprintf(t.format, v)
}

func (t *Type) formatFlags(v uint64) string {
	var out []string
	for _, s := range t.Symbols {
		if s.Value != 0 && v&s.Value == s.Value {
			out = append(out, s.Name)
			v &^= s.Value
		}
	}
	if v != 0 {
		out = append(out, t.formatNumber(v))
	}
	return strings.Join(out, " | ")
}

// appendClassID parses "major:minor" in hexadecimal.
func (t *Type) appendClassID(dst []byte, text string) ([]byte, error) {
	switch text {
	case "root":
		return t.AppendUint(dst, 0xffffffff, 4), nil
	case "none":
		return t.AppendUint(dst, 0, 4), nil
	}
	text = unquote(text)
	major, minor, ok := strings.Cut(text, ":")
	if !ok {
		// a bare number is the whole handle, in decimal
		if v, ok := ParseNumber(text, 32); ok && startsWithDigit(text) {
			return t.AppendUint(dst, v, 4), nil
		}
		major, minor = "", ""
	}
	hi, errHi := handlePart(major)
	lo, errLo := handlePart(minor)
	if errHi != nil || errLo != nil || major == "" && minor == "" {
		return dst, fmt.Errorf("parse %s: %q is not a traffic class: want root, none, MAJOR:MINOR in hexadecimal or a number", t.Name, text)
	}
	return t.AppendUint(dst, hi<<16|lo, 4), nil
}

func handlePart(text string) (uint64, error) {
	if text == "" {
		return 0, nil
	}
	return strconv.ParseUint(text, 16, 16)
}

func (t *Type) formatClassID(b []byte) string {
	switch v := t.Uint(b); v {
	case 0xffffffff:
		return "root"
	case 0:
		return "none"
	default:
		return fmt.Sprintf("%x:%x", v>>16, v&0xffff)
	}
}

func (t *Type) appendLabel(dst []byte, text string) ([]byte, error) {
	bit, ok := uint64(0), false
	if name := unquote(text); startsWithDigit(name) {
		bit, ok = ParseNumber(name, 64)
	}
	if !ok || bit > 127 {
		return dst, fmt.Errorf("parse %s: %q is not a label: want a number from 0 to 127 (names in connlabel.conf are not read)", t.Name, text)
	}
	var label [16]byte
	label[t.byteOf(bit)] = 1 << (bit % 8)
	return append(dst, label[:]...), nil
}

func (t *Type) byteOf(bit uint64) uint64 {
	if t.littleEndian() {
		return bit / 8
	}
	return 15 - bit/8
}

func (t *Type) formatLabel(b []byte) string {
	var out []string
	for bit := range uint64(128) {
		if b[t.byteOf(bit)]&(1<<(bit%8)) != 0 {
			out = append(out, strconv.FormatUint(bit, 10))
		}
	}
	if len(out) == 0 {
		return "0x0"
	}
	return strings.Join(out, ",")
}
