package set

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-proxy/weft/nft/datatype"
)

func (p *Part) appendRange(lo, hi []byte, text string, big bool) ([]byte, []byte, error) {
	at, atHi := len(lo), len(hi)
	if p.Type == datatype.IfName {
		if prefix, ok := datatype.IfNamePrefix(text); ok {
			return p.appendWildcard(lo, hi, prefix)
		}
	}
	if value, length, ok := strings.Cut(text, "/"); ok && !p.Text() {
		return p.appendPrefix(lo, hi, value, length, big)
	}
	if from, to, ok := p.cutRange(text); ok {
		lo, err := p.appendParse(lo, from, big)
		if err != nil {
			return lo, hi, err
		}
		hi, err := p.appendParse(hi, to, big)
		if err != nil {
			return lo, hi, err
		}
		if p.compare(lo[at:], hi[atHi:], big) > 0 {
			return lo, hi, fmt.Errorf("range %q ends before it begins", text)
		}
		return lo, hi, nil
	}
	lo, err := p.appendParse(lo, text, big)
	if err != nil {
		return lo, hi, err
	}
	return lo, append(hi, lo[at:]...), nil
}

func (p *Part) compare(a, b []byte, big bool) int {
	if !big && p.Order == datatype.HostEndian && LittleHost && !p.Text() {
		for i := len(a) - 1; i >= 0; i-- {
			if c := cmp.Compare(a[i], b[i]); c != 0 {
				return c
			}
		}
		return 0
	}
	return bytes.Compare(a, b)
}

func (p *Part) appendWildcard(lo, hi []byte, prefix string) ([]byte, []byte, error) {
	begin, err := p.Type.Parse(prefix)
	if err != nil {
		return lo, hi, err
	}
	lo = append(lo, begin...)
	hi = append(hi, prefix...)
	for range p.Size - len(prefix) {
		hi = append(hi, 0xff)
	}
	return lo, hi, nil
}

// appendPrefix drops the bits after the prefix, as nft does.
func (p *Part) appendPrefix(lo, hi []byte, value, length string, big bool) ([]byte, []byte, error) {
	n, err := strconv.ParseUint(length, 10, 8)
	if err != nil || int(n) > p.Bits {
		return lo, hi, fmt.Errorf("parse %s: prefix length %q: want 0 to %d", p.Type, length, p.Bits)
	}
	if p.Bits%8 != 0 {
		return lo, hi, fmt.Errorf("parse %s: prefixes are not possible in a type of %d bits", p.Type, p.Bits)
	}
	at, atHi := len(lo), len(hi)
	if lo, err = p.appendParse(lo, value, true); err != nil {
		return lo, hi, err
	}
	hi = append(hi, lo[at:]...)
	for i := range p.Size {
		keep := min(max(int(n)-8*i, 0), 8)
		mask := byte(0xff >> keep)
		lo[at+i] &^= mask
		hi[atHi+i] |= mask
	}
	if !big && p.Order == datatype.HostEndian && LittleHost {
		slices.Reverse(lo[at:])
		slices.Reverse(hi[atHi:])
	}
	return lo, hi, nil
}

// Names can contain dashes (echo-request, ftp-data). So a whole constant is not a range; otherwise
// the first dash with constants on both sides counts.
func (p *Part) cutRange(text string) (from, to string, ok bool) {
	if strings.IndexByte(text, '-') < 0 || p.Text() {
		return "", "", false
	}
	if text[0] == '"' {
		return cutQuoted(text)
	}
	if c := text[0]; c >= '0' && c <= '9' && p.Type != datatype.Date {
		// names with dashes never begin with a digit
		from, to, _ = strings.Cut(text, "-")
		return trim(from), trim(to), true
	}
	var room [MaxKey]byte
	if _, err := p.appendParse(room[:0], text, true); err == nil {
		return "", "", false
	}
	for i := range len(text) {
		if text[i] != '-' {
			continue
		}
		a, b := trim(text[:i]), trim(text[i+1:])
		if _, err := p.appendParse(room[:0], a, true); err != nil {
			continue
		}
		if _, err := p.appendParse(room[:0], b, true); err == nil {
			return a, b, true
		}
	}
	return "", "", false
}

// cutQuoted splits "08:00"-"17:00".
func cutQuoted(text string) (from, to string, ok bool) {
	end := strings.IndexByte(text[1:], '"')
	if end < 0 {
		return "", "", false
	}
	from = text[:end+2]
	to, ok = strings.CutPrefix(trim(text[end+2:]), "-")
	return from, trim(to), ok
}

func hasInterval(parts []Part, text string) bool {
	for i := range parts {
		field, rest, _ := cutField(text)
		_, wildcard := datatype.IfNamePrefix(field)
		if wildcard && parts[i].Type == datatype.IfName || strings.Contains(field, "/") && !parts[i].Text() {
			return true
		}
		if _, _, ok := parts[i].cutRange(field); ok {
			return true
		}
		text = rest
	}
	return false
}

// Normalize returns the elements ordered by Compare, without duplicates, in a new slice. It rejects
// overlapping intervals, and a repeated key with different data, timeout, comment or statements.
//
// Auto-merge joins intervals without a timeout that overlap or touch. As in nft, comment and
// statements are the first interval's, or, for equal keys, of the one that ends last.
func (s *Set) Normalize(elems []Element) ([]Element, error) {
	out := slices.Clone(elems)
	slices.SortStableFunc(out, func(a, b Element) int {
		if s.AutoMerge {
			return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(b.KeyEnd, a.KeyEnd))
		}
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.KeyEnd, b.KeyEnd))
	})
	all := 0
	for all < len(out) && out[all].Key == "" {
		if err := s.repeated(out[0], out[all]); err != nil {
			return nil, err
		}
		all++
	}
	first, out := out[:all], out[all:]
	// Concatenations have no order: elements that are not neighbours may overlap.
	concat := len(s.Key.Fields) > 0 && s.Flags&FlagInterval != 0
	n := min(1, len(out))
	for _, e := range out[n:] {
		last := &out[n-1]
		switch {
		case last.Key == e.Key && last.KeyEnd == e.KeyEnd:
			if err := s.repeated(*last, e); err != nil {
				return nil, err
			}
		case s.Flags&FlagInterval == 0 || concat || last.KeyEnd < e.Key && !touches(last.KeyEnd, e.Key):
			out[n], n = e, n+1
		case s.Merged(last) && s.Merged(&e):
			last.KeyEnd = max(last.KeyEnd, e.KeyEnd)
		case last.KeyEnd < e.Key:
			out[n], n = e, n+1
		default:
			return nil, s.Conflict(*last, e, "overlaps")
		}
	}
	out = out[:n]
	if concat && n > 1 {
		if a, b := newBoxes(s.Key.Fields, out).overlap(); a != nil {
			return nil, s.Conflict(*a, *b, "overlaps")
		}
	}
	if all > 0 {
		out = append(out, first[0])
	}
	return out, nil
}

func (s *Set) repeated(a, b Element) error {
	switch {
	case a.Data != b.Data:
		return s.Conflict(a, b, "has two values")
	case !(s.Merged(&a) && s.Merged(&b)) && (a.Timeout != b.Timeout || a.Comment != b.Comment || a.State != b.State):
		return s.elementError("add", s.FormatKey(b), errors.New("the key is given twice, with different timeouts, comments or statements: remove one of them"))
	default:
		return nil
	}
}

// Conflict returns an error about elements that exclude each other.
func (s *Set) Conflict(a, b Element, what string) error {
	if a.Key == b.Key && a.KeyEnd == b.KeyEnd {
		return s.elementError("add", s.FormatKey(a), fmt.Errorf("the key %s: %s and %s", what, s.FormatData(a), s.FormatData(b)))
	}
	advice := ""
	switch {
	case s.Merges():
		advice = ": auto-merge does not join elements with a timeout"
	case !s.Map && s.Ranges():
		advice = ", or declare the set with auto-merge"
	}
	return s.elementError("add", s.FormatKey(b), fmt.Errorf("it %s %s: remove one of them%s", what, s.FormatKey(a), advice))
}

// Next returns the next key, or "" after the greatest.
func Next(key string) string {
	next := []byte(key)
	if !increment(next) {
		return ""
	}
	return string(next)
}

// Before returns the previous key, or "" before the least.
func Before(key string) string {
	b := []byte(key)
	for i := len(b) - 1; i >= 0; i-- {
		if b[i]--; b[i] != 0xff {
			return string(b)
		}
	}
	return ""
}

func touches(a, b string) bool { return b != "" && Next(a) == b }

// Merges reports whether auto-merge joins elements.
func (s *Set) Merges() bool { return s.AutoMerge && !s.Map && s.Ranges() }

// Merged reports whether auto-merge joins an element. nft would give the range its first element's
// timeout, so elements with a timeout stay.
func (s *Set) Merged(e *Element) bool {
	return s.Merges() && e.Key != "" && e.Timeout == 0 && s.Timeout == 0
}

// increment returns false on overflow.
func increment(b []byte) bool {
	for i := len(b) - 1; i >= 0; i-- {
		if b[i]++; b[i] != 0 {
			return true
		}
	}
	return false
}

// FormatKey returns the key in nft's words, or in hexadecimal if its length is wrong.
func (s *Set) FormatKey(e Element) string {
	if e.Key == "" {
		return catchAll
	}
	parts, err := s.Key.Resolve()
	if err != nil || len(e.Key) != int(s.Key.Len) || e.KeyEnd != "" && len(e.KeyEnd) != len(e.Key) {
		return fmt.Sprintf("0x%x", e.Key)
	}
	end := e.KeyEnd
	if end == "" {
		end = e.Key
	}
	return formatParts(parts, e.Key, end, s.Flags&FlagInterval != 0)
}

// FormatData is FormatKey for data; "" for sets.
func (s *Set) FormatData(e Element) string {
	if !s.Map {
		return ""
	}
	if s.Object != "" {
		return e.Data
	}
	if s.Verdict {
		return datatype.Verdict.Format([]byte(e.Data))
	}
	parts, err := s.Data.Resolve()
	if err != nil || len(e.Data) != int(s.Data.Len) {
		return fmt.Sprintf("0x%x", e.Data)
	}
	if s.DataInterval {
		half := len(e.Data) / 2
		return formatParts(parts, e.Data[:half], e.Data[half:], false)
	}
	return formatParts(parts, e.Data, e.Data, false)
}

func formatParts(parts []Part, lo, hi string, big bool) string {
	var out strings.Builder
	at := 0
	for i := range parts {
		if i > 0 {
			out.WriteString(" . ")
		}
		end := at + parts[i].Size
		if end > len(lo) {
			return fmt.Sprintf("0x%x", lo)
		}
		out.WriteString(parts[i].format(lo[at:end], hi[at:end], big))
		at += parts[i].Padded()
	}
	return out.String()
}

func (p *Part) format(lo, hi string, big bool) string {
	hi = p.closedEnd(hi, big)
	if lo == hi {
		return p.Type.Format(p.native(lo, big))
	}
	if p.Type == datatype.IfName {
		if n := strings.IndexByte(lo, 0); n > 0 && lo[:n] == hi[:n] && strings.Count(hi[n:], "\xff") == len(hi)-n {
			return `"` + lo[:n] + `*"`
		}
	}
	if p.Type == datatype.IPv4Addr || p.Type == datatype.IPv6Addr || p.Type == datatype.Mark && big {
		if n, ok := prefixLen(lo, hi); ok {
			return p.Type.Format(p.native(lo, big)) + "/" + strconv.Itoa(n)
		}
	}
	return p.Type.FormatNumber(p.native(lo, big)) + "-" + p.Type.FormatNumber(p.native(hi, big))
}

// OpenEnd sets all bits of end if it is the greatest of the given bits and these are not a multiple
// of eight: 0x3f of 6 bits becomes 0xff. nft then sends no end, and the kernel's interval is open.
func OpenEnd(end []byte, bits int) {
	if len(end) > 0 && bits%8 != 0 && end[0] == 0xff>>(8-bits%8) && bytes.Count(end[1:], []byte{0xff}) == len(end)-1 {
		end[0] = 0xff
	}
}

func (p *Part) closedEnd(end string, big bool) string {
	if !big || p.Bits%8 == 0 || end == "" || strings.Count(end, "\xff") != len(end) {
		return end
	}
	return string([]byte{0xff >> (8 - p.Bits%8)}) + end[1:]
}

// native returns the type's byte order.
func (p *Part) native(v string, big bool) []byte {
	b := []byte(v)
	if p.Order != datatype.HostEndian || !LittleHost || p.Text() {
		return b
	}
	if big != (p.Type.Len() == 0) {
		// types without a width format big-endian numbers
		slices.Reverse(b)
	}
	return b
}

// lo and hi are big-endian.
func prefixLen(lo, hi string) (int, bool) {
	n := 0
	for n < 8*len(lo) && lo[n/8] == hi[n/8] {
		n += 8
	}
	if n < 8*len(lo) {
		n += bits.LeadingZeros8(lo[n/8] ^ hi[n/8])
	}
	for i := range len(lo) {
		mask := byte(0xff >> min(max(n-8*i, 0), 8))
		if lo[i]&mask != 0 || hi[i] != lo[i]|mask {
			return 0, false
		}
	}
	return n, true
}
