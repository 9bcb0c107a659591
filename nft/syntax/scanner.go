package syntax

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/weft-proxy/weft/nft/datatype"
)

// Kind is the kind of a token.
type Kind uint8

// The kinds of tokens.
const (
	// EOF ends the text.
	EOF Kind = iota
	// Newline is the end of a line (not one that a backslash continues).
	Newline
	// Semicolon is ";".
	Semicolon
	// Ident is a name or keyword: a letter or "_", then letters, digits and
	// "/-_.", perhaps with a "*" at the end (an interface wildcard) or a "\*"
	// in it.
	Ident
	// Number is a decimal or 0x-hexadecimal number.
	Number
	// Addr is an IPv4, IPv6 or MAC address.
	Addr
	// Word is any other word that begins with a digit, such as "5s".
	Word
	// String is a quoted string; its Text has no quotes.
	String
	// Punct is punctuation or an operator.
	Punct
)

// String names the kind for messages.
func (k Kind) String() string {
	switch k {
	case EOF:
		return "end of text"
	case Newline:
		return "end of line"
	case Semicolon:
		return `";"`
	case Ident:
		return "name"
	case Number:
		return "number"
	case Addr:
		return "address"
	case Word:
		return "word"
	case String:
		return "string"
	case Punct:
		return "operator"
	default:
		return fmt.Sprintf("token(%d)", uint8(k))
	}
}

// Token is one token of the source.
type Token struct {
	Kind Kind
	// Text is the token as written; for strings without the quotes.
	Text string
	Pos  Pos
	// Offset and End are the byte offsets in the source text, quotes included.
	Offset, End int
}

// String describes the token for messages.
func (t Token) String() string {
	switch t.Kind {
	case EOF, Newline, Semicolon:
		return t.Kind.String()
	default:
		return fmt.Sprintf("%q", t.Text)
	}
}

// duration returns the time that the token is. Like nft, it wants a unit:
// "30" alone is none.
func (t Token) duration() (time.Duration, bool) {
	if t.Kind != Word {
		return 0, false
	}
	d, err := datatype.ParseDuration(t.Text)
	return d, err == nil
}

// Scanner cuts text into tokens. Blanks, comments ("#" to the end of the line)
// and continued lines (backslash, newline) separate tokens and are dropped.
type Scanner struct {
	src       string
	off       int
	line      int
	lineStart int
}

// NewScanner returns a scanner of text.
func NewScanner(text string) *Scanner { return &Scanner{src: text, line: 1} }

// errorf makes an error at a place.
func (s *Scanner) errorf(pos Pos, format string, args ...any) *Error {
	return &Error{Pos: pos, Msg: fmt.Sprintf(format, args...), Line: SourceLine(s.src, pos.Line)}
}

// Next returns the next token; at the end it returns EOF again and again.
func (s *Scanner) Next() (Token, *Error) {
	s.skipBlank()
	t := Token{Pos: Pos{s.line, s.off - s.lineStart + 1}, Offset: s.off, End: s.off}
	if s.off >= len(s.src) {
		return t, nil
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
			return t, s.errorf(t.Pos, "string is not closed: add a double quote")
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
			r, _ := utf8.DecodeRuneInString(s.src[s.off:])
			return t, s.errorf(t.Pos, "unexpected character %q", r)
		}
		s.off += n
		t.Kind = Punct
	}
	t.End = s.off
	if t.Kind != String {
		t.Text = s.src[t.Offset:s.off]
	}
	return t, nil
}

// IsName reports whether text is one name, such as that of a chain.
func IsName(text string) bool {
	t, err := NewScanner(text).Next()
	return err == nil && t.Kind == Ident && t.End == len(text) && t.Offset == 0
}

// IsWord reports whether text is one name, number, address or other word, so that it
// needs no quotes.
func IsWord(text string) bool {
	t, err := NewScanner(text).Next()
	return err == nil && t.End == len(text) && t.Offset == 0 &&
		(t.Kind == Ident || t.Kind == Number || t.Kind == Addr || t.Kind == Word)
}

// skipBlank moves to the next token.
func (s *Scanner) skipBlank() {
	for s.off < len(s.src) {
		switch c := s.src[s.off]; {
		case c == ' ' || c == '\t' || c == '\r':
			s.off++
		case c == '#':
			end := strings.IndexByte(s.src[s.off:], '\n')
			if end < 0 {
				end = len(s.src) - s.off
			}
			s.off += end
		case c == '\\' && strings.HasPrefix(s.src[s.off:], "\\\n"):
			s.off += 2
			s.line++
			s.lineStart = s.off
		default:
			return
		}
	}
}

// digits consumes a word that begins with a digit and returns its kind.
func (s *Scanner) digits() Kind {
	start := s.off
	for s.off < len(s.src) && (isLetter(s.src[s.off]) || isDigit(s.src[s.off]) || s.src[s.off] == '_') {
		s.off++
	}
	// "10.0.0" is a misspelled address, not a concatenation.
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

// ident consumes a name. A star ends it; one behind a backslash is a letter of
// it, as in an interface called "eth*".
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

// letters consumes what names consist of.
func (s *Scanner) letters() {
	for s.off < len(s.src) {
		c := s.src[s.off]
		if !isLetter(c) && !isDigit(c) && c != '_' && c != '/' && c != '-' && c != '.' {
			break
		}
		s.off++
	}
}

// operator returns the length of the operator or punctuation at the head of s.
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
