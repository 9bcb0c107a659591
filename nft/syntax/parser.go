package syntax

import (
	"fmt"
	"slices"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/internal/scan"
)

const (
	// MaxRuleLength is the longest text, in bytes.
	MaxRuleLength = 64 << 10
	// MaxDepth is the deepest nesting of parentheses and braces.
	MaxDepth = 64
)

// Rule is a parsed rule.
type Rule struct {
	Family  nft.Family
	Stmts   []Stmt
	Comment string
}

// ParseRule parses the text after "add rule TABLE CHAIN" in nft(8). The error is an *Error.
func ParseRule(family nft.Family, text string) (*Rule, error) {
	p := newParser(text)
	p.SkipNewlines()
	r := p.rule(family)
	p.SkipNewlines()
	if p.Tok.Kind == scan.Semicolon {
		p.Fail(p.Tok, "unexpected \";\": give one rule without an end mark")
	}
	return result(p, r, "after the end of the rule")
}

// result fails if text is left; where completes the error.
func result[T any](p *parser, x T, where string) (T, error) {
	if p.err == nil && p.Tok.Kind != scan.EOF {
		p.Fail(p.Tok, "unexpected %s %s", p.Tok, where)
	}
	if p.err != nil {
		var zero T
		return zero, p.err
	}
	return x, nil
}

// After the first error every token is EOF, so that loops end.
type parser struct {
	scan.Cursor
	scan.Scanner
	src   string
	err   *Error
	depth int
	// nft rejects IPv6 extension headers in an assigned value
	assigned bool
}

func newParser(text string) *parser {
	p := &parser{src: text}
	if len(text) > MaxRuleLength {
		p.src = ""
		p.fail(Pos{Line: 1, Column: 1}, "text has %d bytes: the limit of a rule is %d", len(text), MaxRuleLength)
	}
	p.Scanner = *scan.New(p.src)
	p.Start(p)
	return p
}

func (p *parser) Report(at scan.Token, format string, args ...any) { p.fail(at.Pos, format, args...) }

func (p *parser) fail(pos Pos, format string, args ...any) {
	if p.err == nil {
		p.err = &Error{Pos: pos, Msg: fmt.Sprintf(format, args...), Line: SourceLine(p.src, pos.Line)}
	}
	p.Failed = true
	p.Tok.Kind, p.Ahead.Kind = scan.EOF, scan.EOF
}

func (p *parser) uint32(want string) uint32 { return uint32(p.ExpectNumber(want, 32)) }

// text returns a quoted text, or a word other than a keyword.
func (p *parser) text(want string) string {
	if p.Tok.Kind == scan.Ident && datatype.IsKeyword(p.Tok.Text, true) {
		p.Unexpected(want)
	}
	return p.ExpectText(want)
}

func (p *parser) family() string {
	if p.IsIdent("ip") || p.IsIdent("ip6") {
		return p.ExpectIdent("a family")
	}
	return ""
}

// flagList sorts the flags, and removes duplicates.
func (p *parser) flagList(list []string, flags ...string) []string {
	list = append(list, p.OneOf(flags...))
	for p.AcceptPunct(",") {
		list = append(list, p.OneOf(flags...))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func (p *parser) begin() Pos {
	pos := p.Tok.Pos
	p.Advance()
	return pos
}

func (p *parser) nest() {
	if p.depth++; p.depth > MaxDepth {
		p.Fail(p.Tok, "nested deeper than %d levels", MaxDepth)
	}
}

func (p *parser) unnest() { p.depth-- }

func (p *parser) open() {
	p.nest()
	p.Inline++
	p.Advance()
}

// close makes line ends count again after the outermost bracket.
func (p *parser) close(text string) {
	p.unnest()
	p.Inline--
	p.ExpectPunct(text)
}

func (p *parser) rule(family nft.Family) *Rule {
	r := &Rule{Family: family}
	for p.err == nil {
		switch {
		case p.Tok.EndsStatement():
			if len(r.Stmts) == 0 {
				p.Fail(p.Tok, "rule has no statement")
			}
			return r
		case p.IsIdent("comment"):
			if len(r.Stmts) == 0 {
				p.Fail(p.Tok, "comment before the first statement: write it at the end of the rule")
			}
			p.Advance()
			r.Comment = nft.ParseComment(p.text("a comment in double quotes"))
			return r
		default:
			r.Stmts = append(r.Stmts, p.stmt())
		}
	}
	return r
}
