package scan

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/weft-proxy/weft/nft/datatype"
)

// Cursor is a position in a sequence of tokens.
type Cursor struct {
	Tok, Ahead Token
	// end of the last consumed token
	End int
	// above 0 in brackets, where line ends have no meaning
	Inline int
	// open at the current token
	Braces int
	// from an error until the parser recovers; no Accept or Is method matches
	Failed bool

	parser Parser
}

// Parser embeds a Cursor.
type Parser interface {
	Next() Token
	// Report sets Failed.
	Report(at Token, format string, args ...any)
}

// Start reads the parser's first token.
func (c *Cursor) Start(p Parser) {
	c.parser = p
	c.Ahead = p.Next()
	c.Advance()
}

// Advance stays at the end of the text.
func (c *Cursor) Advance() {
	if c.Tok.Kind == Punct {
		switch c.Tok.Text {
		case "{":
			c.Braces++
		case "}":
			c.Braces = max(0, c.Braces-1)
		}
	}
	c.End = c.Tok.End
	c.step()
	for c.Inline > 0 && c.Tok.Kind == Newline {
		c.step()
	}
	if c.Tok.Kind == Illegal {
		c.Fail(c.Tok, "%s", c.Tok.Text)
	}
}

func (c *Cursor) step() {
	c.Tok = c.Ahead
	if c.Tok.Kind != EOF {
		c.Ahead = c.parser.Next()
	}
}

// Fail records an error at a token, unless Failed is set.
func (c *Cursor) Fail(at Token, format string, args ...any) {
	if !c.Failed {
		c.parser.Report(at, format, args...)
	}
}

// Unexpected fails at the current token.
func (c *Cursor) Unexpected(want string) {
	c.Fail(c.Tok, "unexpected %s: want %s", c.Tok, want)
}

// IsPunct compares the current token.
func (c *Cursor) IsPunct(text string) bool {
	return !c.Failed && c.Tok.Kind == Punct && c.Tok.Text == text
}

// IsIdent compares the current token.
func (c *Cursor) IsIdent(text string) bool {
	return !c.Failed && c.Tok.Kind == Ident && c.Tok.Text == text
}

// AcceptPunct consumes the punctuation, if current.
func (c *Cursor) AcceptPunct(text string) bool { return c.accept(c.IsPunct(text)) }

// AcceptIdent consumes the word, if current.
func (c *Cursor) AcceptIdent(text string) bool { return c.accept(c.IsIdent(text)) }

func (c *Cursor) accept(ok bool) bool {
	if ok {
		c.Advance()
	}
	return ok
}

// ExpectPunct consumes the punctuation, or fails.
func (c *Cursor) ExpectPunct(text string) {
	if !c.AcceptPunct(text) {
		c.Unexpected(strconv.Quote(text))
	}
}

// ExpectIdent consumes a name.
func (c *Cursor) ExpectIdent(want string) string { return c.expect(want, Ident) }

// ExpectText consumes a name or a quoted string.
func (c *Cursor) ExpectText(want string) string { return c.expect(want, Ident, String) }

func (c *Cursor) expect(want string, kinds ...Kind) string {
	for _, k := range kinds {
		if !c.Failed && c.Tok.Kind == k {
			text := c.Tok.Text
			c.Advance()
			return text
		}
	}
	c.Unexpected(want)
	return ""
}

// OneOf consumes one of the words.
func (c *Cursor) OneOf(words ...string) string {
	for _, w := range words {
		if c.AcceptIdent(w) {
			return w
		}
	}
	c.Unexpected(strings.Join(words, ", "))
	return ""
}

// ExpectNumber consumes a number of at most the given bits.
func (c *Cursor) ExpectNumber(want string, bits int) uint64 {
	if c.Tok.Kind != Number {
		c.Unexpected(want)
		return 0
	}
	n, ok := datatype.ParseNumber(c.Tok.Text, bits)
	if !ok {
		c.Fail(c.Tok, "%s is too large: want %s of at most %d", c.Tok.Text, want, uint64(math.MaxUint64)>>(64-bits))
		return 0
	}
	c.Advance()
	return n
}

// ExpectTime consumes a time such as 5s.
func (c *Cursor) ExpectTime() time.Duration {
	d, ok := c.Tok.Duration()
	if !ok || c.Failed {
		c.Unexpected("a time such as 1h30m or 5s")
		return 0
	}
	c.Advance()
	return d
}

// SkipNewlines skips line ends.
func (c *Cursor) SkipNewlines() {
	for !c.Failed && c.Tok.Kind == Newline {
		c.Advance()
	}
}

// SkipEnds skips line ends and semicolons.
func (c *Cursor) SkipEnds() {
	for c.Tok.Kind == Newline || c.Tok.Kind == Semicolon {
		c.Advance()
	}
}
