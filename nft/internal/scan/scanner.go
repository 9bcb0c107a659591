package scan

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Scanner splits text into tokens, without blanks, comments ("#") and continued lines.
type Scanner struct {
	src       string
	off       int
	line      int
	lineStart int
}

// New returns a scanner of text.
func New(text string) *Scanner { return &Scanner{src: text, line: 1} }

// Next returns the next token, at the end always EOF.
func (s *Scanner) Next() Token {
	s.skipBlank()
	t := Token{Pos: Pos{s.line, s.off - s.lineStart + 1}, Offset: s.off, End: s.off}
	if s.off >= len(s.src) {
		return t
	}
	switch c := s.src[s.off]; {
	case c == '\n':
		s.off++
		s.line++
		s.lineStart = s.off
		t.Kind = Newline
	case c == ';':
		s.off++
		t.Kind = Semicolon
	case c == '"':
		end := strings.IndexAny(s.src[s.off+1:], "\"\n")
		if end < 0 || s.src[s.off+1+end] == '\n' {
			t.Kind, t.Text = Illegal, "string is not closed: add a double quote"
			s.SkipLine()
			t.End = s.off
			return t
		}
		t.Kind = String
		t.Text = s.src[s.off+1 : s.off+1+end]
		s.off += end + 2
	case isLetter(c) || c == '_' || c == ':' || isDigit(c):
		if n := address(s.src[s.off:]); n > 0 {
			t.Kind = Addr
			s.off += n
		} else if n := classID(s.src[s.off:]); n > 0 {
			t.Kind = Word
			s.off += n
		} else if isDigit(c) {
			t.Kind = s.digits()
		} else if c == ':' {
			s.off++
			t.Kind = Punct
		} else {
			s.ident()
			t.Kind = Ident
		}
	case c == '\\' && strings.HasPrefix(s.src[s.off:], `\*`):
		s.ident()
		t.Kind = Ident
	default:
		n := operator(s.src[s.off:])
		if n == 0 {
			r, size := utf8.DecodeRuneInString(s.src[s.off:])
			t.Kind, t.Text = Illegal, fmt.Sprintf("unexpected character %q", r)
			s.off += size
			t.End = s.off
			return t
		}
		s.off += n
		t.Kind = Punct
	}
	t.End = s.off
	if t.Kind != String {
		t.Text = s.src[t.Offset:s.off]
	}
	return t
}

// IsName reports whether text is one name.
func IsName(text string) bool { return isOne(text, Ident) }

// IsWord reports whether text needs no quotes.
func IsWord(text string) bool { return isOne(text, Ident, Number, Addr, Word) }

func isOne(text string, kinds ...Kind) bool {
	t := New(text).Next()
	return t.Offset == 0 && t.End == len(text) && slices.Contains(kinds, t.Kind)
}

// SkipLine moves to the line's end.
func (s *Scanner) SkipLine() {
	if i := strings.IndexByte(s.src[s.off:], '\n'); i >= 0 {
		s.off += i
	} else {
		s.off = len(s.src)
	}
}

// Offset returns where the remaining text begins.
func (s *Scanner) Offset() int { return s.off }

func (s *Scanner) skipBlank() {
	for s.off < len(s.src) {
		switch c := s.src[s.off]; {
		case c == ' ' || c == '\t' || c == '\r':
			s.off++
		case c == '#':
			s.SkipLine()
		case c == '\\' && strings.HasPrefix(s.src[s.off:], "\\\n"):
			s.off += 2
			s.line++
			s.lineStart = s.off
		default:
			return
		}
	}
}

func (s *Scanner) digits() Kind {
	start := s.off
	for s.off < len(s.src) && (isLetter(s.src[s.off]) || isDigit(s.src[s.off]) || s.src[s.off] == '_') {
		s.off++
	}
	// "10.0.0" is a misspelled address, not a concatenation
	for s.off+1 < len(s.src) && s.src[s.off] == '.' && isDigit(s.src[s.off+1]) {
		for s.off++; s.off < len(s.src) && isDigit(s.src[s.off]); {
			s.off++
		}
	}
	word := s.src[start:s.off]
	if hex, ok := strings.CutPrefix(word, "0x"); ok && hex != "" && strings.Trim(hex, "0123456789abcdefABCDEF") == "" {
		return Number
	}
	if strings.Trim(word, "0123456789") == "" {
		return Number
	}
	return Word
}

// ident ends a name after a star. After a backslash a star belongs to the name, as in an interface
// called "eth*".
func (s *Scanner) ident() {
	s.letters()
	if strings.HasPrefix(s.src[s.off:], `\*`) {
		s.off += 2
		s.letters()
		return
	}
	if s.off < len(s.src) && s.src[s.off] == '*' {
		s.off++
	}
}

func (s *Scanner) letters() {
	for s.off < len(s.src) {
		c := s.src[s.off]
		if !isLetter(c) && !isDigit(c) && c != '_' && c != '/' && c != '-' && c != '.' {
			break
		}
		s.off++
	}
}

func operator(s string) int {
	if len(s) >= 2 {
		switch s[:2] {
		case "==", "!=", "<=", ">=", "<<", ">>":
			return 2
		}
	}
	if strings.IndexByte("{}()[],.-+/=<>&|^!@*$:", s[0]) >= 0 {
		return 1
	}
	return 0
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
func isDigit(c byte) bool  { return '0' <= c && c <= '9' }
func isHex(c byte) bool    { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }
