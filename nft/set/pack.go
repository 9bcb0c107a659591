package set

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/userdata"
)

const maxPacked = 4*MaxKey + 4 + datatype.MaxName

// Pack packs an element. Data is empty in sets, and a VerdictData in verdict maps.
func (s *Set) Pack(e nft.Element) (Element, error) {
	var buf [maxPacked]byte
	b, keys, err := s.pack(buf[:0], e)
	if err != nil {
		return Element{}, err
	}
	// one string needs one allocation
	return s.element(string(b), keys, e)
}

// pack appends the key, in interval sets with its end, and the data. It returns the key's length.
func (s *Set) pack(b []byte, e nft.Element) (_ []byte, keys int, err error) {
	b, err = s.appendKey(b, e.Key)
	keys = len(b)
	switch {
	case err != nil:
	case s.Map:
		b, err = s.appendData(b, e.Value)
	case e.Value != "":
		err = fmt.Errorf("unexpected value %q: this is a set, not a map", e.Value)
	}
	if err == nil && (e.Timeout != 0 || e.Expires != 0 || e.Comment != "") {
		err = s.checkOptions(e)
	}
	if err != nil {
		return b, 0, s.elementError("pack", e.Key, err)
	}
	return b, keys, nil
}

const catchAll = "*"

func (s *Set) element(packed string, keys int, e nft.Element) (Element, error) {
	out := Element{Key: packed[:keys], Data: packed[keys:], Timeout: e.Timeout, Comment: e.Comment}
	if e.Expires != 0 || len(e.Stateful) > 0 {
		var err error
		if out.State, err = s.elementState(e); err != nil {
			return Element{}, s.elementError("pack", e.Key, err)
		}
	}
	if s.Flags&FlagInterval != 0 {
		out.Key, out.KeyEnd = packed[:keys/2], packed[keys/2:keys]
	}
	return out, nil
}

func (s *Set) elementState(e nft.Element) (string, error) {
	words, err := declaredStateful(e.Stateful)
	if err != nil {
		return "", err
	}
	switch {
	case len(words) == 0:
	case len(s.Stateful) == 0 && s.Flags&FlagEval == 0:
		return "", fmt.Errorf("statement %q: the %s has no statements: declare them there", words[0], s.noun())
	default:
		err = s.CheckStatements(words)
	}
	return NewState(e.Expires, words), err
}

// CheckStatements checks canonical statements of an element. If the set declares statements, kinds
// and order must be the same. With the flag timeout, ct count is not possible.
func (s *Set) CheckStatements(words []string) error {
	if len(s.Stateful) > 0 && len(s.Stateful) != len(words) {
		return fmt.Errorf("the element has %d statements, the %s %d: want the same", len(words), s.noun(), len(s.Stateful))
	}
	for i, text := range words {
		switch {
		case len(s.Stateful) > 0 && !sameStatement(s.Stateful[i], text):
			return fmt.Errorf("statement %q: the %s has %q in its place", text, s.noun(), s.Stateful[i])
		case s.Flags&FlagTimeout != 0 && strings.HasPrefix(text, "ct "):
			return fmt.Errorf("statement %q: it is not possible in a %s with the flag timeout", text, s.noun())
		}
	}
	return nil
}

func sameStatement(a, b string) bool {
	x, _, _ := strings.Cut(a, " ")
	y, _, _ := strings.Cut(b, " ")
	return x == y
}

// PackKey is Pack for Key and KeyEnd alone.
func (s *Set) PackKey(key string) (Element, error) {
	var buf [2 * MaxKey]byte
	b, err := s.appendKey(buf[:0], key)
	if err != nil {
		return Element{}, s.elementError("pack", key, err)
	}
	return s.element(string(b), len(b), nft.Element{})
}

func (s *Set) checkOptions(e nft.Element) error {
	switch {
	case e.Timeout < 0 || e.Timeout > 0 && e.Timeout < time.Millisecond:
		return fmt.Errorf("timeout %v: the smallest is 1ms", e.Timeout)
	case e.Expires < 0 || e.Expires > 0 && e.Expires < time.Millisecond:
		return fmt.Errorf("expires %v: the smallest is 1ms", e.Expires)
	case e.Expires > 0 && s.Flags&FlagTimeout == 0:
		return fmt.Errorf("expires %s: the %s needs flag timeout", datatype.FormatDuration(e.Expires), s.noun())
	case e.Expires > 0 && e.Timeout == 0 && s.Timeout == 0:
		return fmt.Errorf("expires %s: neither the element nor the %s has a timeout", datatype.FormatDuration(e.Expires), s.noun())
	case e.Expires > cmp.Or(e.Timeout, s.Timeout):
		return fmt.Errorf("expires %s: the timeout is shorter", datatype.FormatDuration(e.Expires))
	case e.Timeout > 0 && s.Flags&FlagTimeout == 0:
		return fmt.Errorf("timeout %s: the %s needs flag timeout", datatype.FormatDuration(e.Timeout), s.noun())
	}
	return userdata.CheckComment(e.Comment)
}

func (s *Set) noun() string {
	if s.Map {
		return "map"
	}
	return "set"
}

func (s *Set) elementError(verb, key string, err error) error {
	if len(key) > 256 {
		key = key[:256] + "..."
	}
	return fmt.Errorf("%s element %q of %s %s: %w", verb, key, s.noun(), s.Name, err)
}

func (s *Set) appendKey(b []byte, text string) ([]byte, error) {
	if text == catchAll {
		return b, nil
	}
	parts, err := s.Key.Resolve()
	if err != nil {
		return b, err
	}
	interval := s.Flags&FlagInterval != 0
	b, err = appendParts(b, parts, text, interval, interval)
	if err != nil && !interval && hasInterval(parts, text) {
		err = fmt.Errorf("%w (prefixes and ranges need flags interval)", err)
	}
	return b, err
}

func (s *Set) appendData(b []byte, text string) ([]byte, error) {
	if text == "" {
		return b, errors.New("no value: a map's element is KEY : VALUE")
	}
	switch {
	case s.Verdict:
		return datatype.Verdict.AppendParse(b, text)
	case s.Object != "":
		return appendObjectName(b, text)
	}
	parts, err := s.Data.Resolve()
	if err == nil {
		b, err = appendParts(b, parts, text, s.DataInterval, false)
	}
	if err != nil {
		return b, fmt.Errorf("value %q: %w", text, err)
	}
	return b, nil
}

// appendParts appends a value or, for an interval, its first and last value. big selects
// big-endian numbers, for keys of interval sets.
func appendParts(b []byte, parts []Part, text string, interval, big bool) ([]byte, error) {
	var room [MaxKey]byte
	end, rest := room[:0], text
	for i := range parts {
		field, tail, ok := trim(rest), "", false
		if len(parts) > 1 {
			field, tail, ok = cutField(rest)
		}
		if ok != (i < len(parts)-1) {
			return b, countError(parts, text)
		}
		var err error
		if interval {
			b, end, err = parts[i].appendRange(b, end, field, big)
		} else {
			b, err = parts[i].appendParse(b, field, false)
		}
		switch {
		case err != nil && len(parts) > 1:
			return b, fmt.Errorf("part %d: %w", i+1, err)
		case err != nil:
			return b, err
		case len(parts) > 1:
			b, end = AppendPadding(b, parts[i]), AppendPadding(end, parts[i])
		case big:
			OpenEnd(end, parts[i].Bits)
		}
		rest = tail
	}
	if interval {
		b = append(b, end...)
	}
	return b, nil
}

// AppendPadding pads a part to a multiple of four bytes.
func AppendPadding(b []byte, p Part) []byte {
	for range p.Padded() - p.Size {
		b = append(b, 0)
	}
	return b
}

func countError(parts []Part, text string) error {
	n := 1
	for rest, ok := text, true; ok; n++ {
		if _, rest, ok = cutField(rest); !ok {
			break
		}
	}
	names := make([]string, len(parts))
	for i, p := range parts {
		names[i] = p.Type.Name
	}
	return fmt.Errorf("%d parts: want %d, %s, joined by \" . \"", n, len(parts), strings.Join(names, " . "))
}

// cutField cuts at the first dot between blanks and outside of quotes, and removes the blanks.
func cutField(text string) (field, rest string, found bool) {
	quoted := false
	for i := range len(text) {
		switch text[i] {
		case '"':
			quoted = !quoted
		case '.':
			if !quoted && i > 0 && blank(text[i-1]) && i+1 < len(text) && blank(text[i+1]) {
				return trim(text[:i]), text[i+2:], true
			}
		}
	}
	return trim(text), "", false
}

func blank(c byte) bool { return c == ' ' || c == '\t' }

func trim(s string) string {
	for s != "" && blank(s[0]) {
		s = s[1:]
	}
	for s != "" && blank(s[len(s)-1]) {
		s = s[:len(s)-1]
	}
	return s
}

// appendParse does not pad. Interval sets compare bytes in order, so their numbers must be
// big-endian.
func (p *Part) appendParse(b []byte, text string, big bool) ([]byte, error) {
	if p.Type.Len() == 0 && !p.Text() {
		return p.appendNumber(b, text, big)
	}
	if p.Text() && datatype.IsKeyword(text, false) {
		return b, fmt.Errorf("parse %s: %s is a keyword: a name needs double quotes then", p.Type, text)
	}
	at := len(b)
	b, err := p.Type.AppendParse(b, text)
	if err != nil {
		return b, err
	}
	if p.Text() {
		if len(b)-at > p.Size {
			return b[:at], fmt.Errorf("parse %s: %q has %d bytes: want at most %d", p.Type, text, len(b)-at, p.Size)
		}
		for len(b)-at < p.Size {
			b = append(b, 0)
		}
		return b, nil
	}
	if big && p.Order == datatype.HostEndian && LittleHost {
		slices.Reverse(b[at:])
	}
	return b, nil
}

func (p *Part) appendNumber(b []byte, text string, big bool) ([]byte, error) {
	v, err := p.Type.ParseUint(text)
	if err != nil {
		return b, err
	}
	if p.Bits < 64 && v>>p.Bits != 0 {
		return b, fmt.Errorf("parse %s: %s is out of range: the greatest is %d", p.Type, text, uint64(1)<<p.Bits-1)
	}
	at := len(b)
	b = datatype.Integer.AppendUint(b, v, p.Size)
	if !big && p.Order == datatype.HostEndian && LittleHost {
		slices.Reverse(b[at:])
	}
	return b, nil
}

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

// LittleHost is true on little-endian machines.
var LittleHost = binary.NativeEndian.Uint16([]byte{1, 0}) == 1
