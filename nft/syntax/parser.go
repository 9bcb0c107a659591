package syntax

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/weft-proxy/weft/nft"
)

// The bounds of what the parsers accept.
const (
	// MaxRuleLength is the greatest length of a rule's text in bytes.
	MaxRuleLength = 64 << 10
	// MaxDepth is how deep parentheses and braces may be nested.
	MaxDepth = 64
)

// ParseRule parses the text of one rule, as it stands after "add rule TABLE
// CHAIN" in nft(8). The error is an *Error.
func ParseRule(family nft.Family, text string) (*Rule, error) {
	p := newParser(text)
	p.checkLength()
	p.skipNewlines()
	r := p.rule(family)
	p.skipNewlines()
	if p.err == nil && p.tok.Kind != EOF {
		if p.tok.Kind == Semicolon {
			p.fail(p.tok.Pos, "unexpected \";\": give one rule without an end mark")
		} else {
			p.fail(p.tok.Pos, "unexpected %s after the end of the rule", p.tok)
		}
	}
	if p.err != nil {
		return nil, p.err
	}
	return r, nil
}

// ParseTypeOf parses the selectors of a typeof declaration, such as
// "ip daddr . tcp dport" or "ip daddr : verdict". The error is an *Error.
func ParseTypeOf(text string) (*TypeOf, error) {
	p := newParser(text)
	p.checkLength()
	t := &TypeOf{Key: p.typeOfList()}
	if p.acceptPunct(":") {
		t.Map = true
		if p.acceptIdent("verdict") {
			t.Verdict = true
		} else {
			t.Interval = p.acceptIdent("interval")
			t.Data = p.typeOfList()
		}
	}
	if p.err == nil && p.tok.Kind != EOF {
		p.fail(p.tok.Pos, "unexpected %s in a typeof declaration", p.tok)
	}
	if p.err != nil {
		return nil, p.err
	}
	return t, nil
}

// parser is a recursive-descent parser with two tokens of lookahead. The
// first error sticks: from then on every token is EOF, so that all loops end.
type parser struct {
	sc        *Scanner
	tok, next Token
	// end is the offset behind the token that was consumed last.
	end   int
	err   *Error
	depth int
	// inline is above 0 inside braces and parentheses of a rule, where line
	// ends mean nothing.
	inline int
	// assigned is true in a value that is assigned, where nft takes no IPv6
	// extension header.
	assigned bool
}

// newParser returns a parser at the first token.
func newParser(text string) *parser {
	p := &parser{sc: NewScanner(text)}
	p.next = p.scan()
	p.advance()
	return p
}

// checkLength refuses text that is too long for a rule.
func (p *parser) checkLength() {
	if len(p.sc.src) > MaxRuleLength {
		p.fail(Pos{1, 1}, "text has %d bytes: a rule may have %d", len(p.sc.src), MaxRuleLength)
		p.err.Line = ""
	}
}

// scan reads a token from the scanner.
func (p *parser) scan() Token {
	t, err := p.sc.Next()
	if err != nil {
		if p.err == nil {
			p.err = err
		}
		t.Kind = EOF
	}
	return t
}

// advance moves to the next token.
func (p *parser) advance() {
	p.end = p.tok.End
	p.tok = p.next
	if p.tok.Kind != EOF {
		p.next = p.scan()
	}
	for p.inline > 0 && p.tok.Kind == Newline {
		p.tok = p.next
		p.next = p.scan()
	}
	if p.err != nil && p.tok.Pos == p.err.Pos {
		p.tok.Kind = EOF
	}
}

// fail records the first error and ends the token stream.
func (p *parser) fail(pos Pos, format string, args ...any) {
	// An error of the scanner lies further on than the token at hand, which
	// may be wrong in itself: the first place wins.
	if p.err == nil || (p.tok.Kind != EOF && before(pos, p.err.Pos)) {
		p.err = &Error{Pos: pos, Msg: fmt.Sprintf(format, args...), Line: SourceLine(p.sc.src, pos.Line)}
	}
	p.tok.Kind, p.next.Kind = EOF, EOF
}

// before reports whether a stands before b in the text.
func before(a, b Pos) bool {
	return a.Line < b.Line || a.Line == b.Line && a.Column < b.Column
}

// unexpected fails at the current token.
func (p *parser) unexpected(want string) {
	p.fail(p.tok.Pos, "unexpected %s: want %s", p.tok, want)
}

// skipNewlines skips line ends.
func (p *parser) skipNewlines() {
	for p.tok.Kind == Newline {
		p.advance()
	}
}

// isPunct reports whether the current token is the given punctuation.
func (p *parser) isPunct(text string) bool { return p.tok.Kind == Punct && p.tok.Text == text }

// isIdent reports whether the current token is the given word.
func (p *parser) isIdent(text string) bool { return p.tok.Kind == Ident && p.tok.Text == text }

// acceptPunct consumes the given punctuation if it is there.
func (p *parser) acceptPunct(text string) bool {
	if !p.isPunct(text) {
		return false
	}
	p.advance()
	return true
}

// acceptIdent consumes the given word if it is there.
func (p *parser) acceptIdent(text string) bool {
	if !p.isIdent(text) {
		return false
	}
	p.advance()
	return true
}

// expectPunct consumes the given punctuation.
func (p *parser) expectPunct(text string) {
	if !p.acceptPunct(text) {
		p.unexpected(strconv.Quote(text))
	}
}

// expectIdent consumes a name; want says what it is for.
func (p *parser) expectIdent(want string) string {
	if p.tok.Kind != Ident {
		p.unexpected(want)
		return ""
	}
	text := p.tok.Text
	p.advance()
	return text
}

// oneOf consumes one of the given words.
func (p *parser) oneOf(words ...string) string {
	for _, w := range words {
		if p.acceptIdent(w) {
			return w
		}
	}
	p.unexpected(strings.Join(words, ", "))
	return ""
}

// number consumes a number of at most the given bits; it may be hexadecimal.
func (p *parser) number(want string, bits int) uint64 {
	if p.tok.Kind != Number {
		p.unexpected(want)
		return 0
	}
	n, err := ParseNumber(p.tok.Text, bits)
	if err != nil {
		p.fail(p.tok.Pos, "%s %s does not fit in %d bits", want, p.tok.Text, bits)
		return 0
	}
	p.advance()
	return n
}

// ParseNumber reads a decimal, hexadecimal (0x) or octal (leading 0) number.
func ParseNumber(s string, bits int) (uint64, error) {
	base := 10
	switch {
	case strings.HasPrefix(s, "0x"), strings.HasPrefix(s, "0X"):
		s, base = s[2:], 16
	case len(s) > 1 && s[0] == '0':
		base = 8
	}
	n, err := strconv.ParseUint(s, base, bits)
	if err != nil {
		return 0, fmt.Errorf("parse number %q: %w", s, err)
	}
	return n, nil
}

// open enters a bracket: deeper nesting than MaxDepth is an error.
func (p *parser) open() {
	p.depth++
	p.inline++
	if p.depth > MaxDepth {
		p.fail(p.tok.Pos, "nested deeper than %d levels", MaxDepth)
	}
	p.advance()
}

// close leaves a bracket that ends in text. The line end behind it counts
// again when this was the outermost bracket.
func (p *parser) close(text string) {
	p.depth--
	p.inline--
	p.expectPunct(text)
}

// rule parses statements up to the end of the line, ";" or "}".
func (p *parser) rule(family nft.Family) *Rule {
	r := &Rule{Family: family}
	for p.err == nil {
		switch {
		case p.tok.Kind == EOF, p.tok.Kind == Newline, p.tok.Kind == Semicolon, p.isPunct("}"):
			if len(r.Stmts) == 0 {
				p.fail(p.tok.Pos, "rule has no statement")
			}
			return r
		case p.isIdent("comment"):
			if len(r.Stmts) == 0 {
				p.fail(p.tok.Pos, "comment before the first statement: it goes to the end of the rule")
			}
			p.advance()
			r.Comment = p.text("a comment")
			return r
		default:
			r.Stmts = append(r.Stmts, p.stmt())
		}
	}
	return r
}

// text consumes a quoted string or a name.
func (p *parser) text(want string) string {
	if p.tok.Kind != String && p.tok.Kind != Ident {
		p.unexpected(want + " in double quotes")
		return ""
	}
	s := p.tok.Text
	p.advance()
	return s
}
