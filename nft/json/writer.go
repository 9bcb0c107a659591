package json

import (
	"strings"

	"github.com/weft-proxy/weft/nft/internal/scan"
	"github.com/weft-proxy/weft/nft/syntax"
)

// text is a text in nft's own syntax, or the first error.
type text struct {
	b     strings.Builder
	depth int
	err   *syntax.Error
}

// writer writes rules and expressions.
type writer struct {
	text
	// compares a selector with a boolean: whether the packet has the header
	presence bool
}

func (x *text) fail(n node, format string, args ...any) {
	if x.err == nil {
		x.err = n.errorf(format, args...)
	}
}

func (x *text) str(words ...string) {
	for _, s := range words {
		x.b.WriteString(s)
	}
}

func (x *text) separator(i int, sep string) {
	if i > 0 {
		x.str(sep)
	}
}

func (x *text) quoted(n node) {
	s := n.text()
	if strings.ContainsAny(s, "\"\n") {
		x.fail(n, "%q cannot be written in nft: it contains quotes or line ends", s)
		return
	}
	x.str(`"`, s, `"`)
}

const wordChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_[] "

// word writes one or two words of nft's vocabulary.
func (x *text) word(n node) {
	s := n.text()
	if s == "" || strings.Count(s, " ") > 1 || strings.Trim(s, wordChars) != "" {
		x.fail(n, "unexpected %s: want a word of nft", n.describe())
		return
	}
	x.str(s)
}

func (x *text) num(n node) { x.digits(n, n.number()) }

func (x *text) digits(n node, s string) {
	if s == "" {
		x.fail(n, "unexpected %s: want a number", n.describe())
	}
	x.str(s)
}

// name writes a name, which may begin with "@".
func (x *text) name(n node) {
	s := n.text()
	if !scan.IsName(strings.TrimPrefix(s, "@")) {
		x.fail(n, "unexpected %s: want a name", n.describe())
	}
	x.str(s)
}

// enter limits depth and length; false stops the writer. The caller calls leave in either case.
func (x *text) enter(n node) bool {
	if x.depth++; x.depth > syntax.MaxDepth {
		x.fail(n, "nested deeper than %d levels", syntax.MaxDepth)
	}
	if x.b.Len() > syntax.MaxRuleLength {
		x.fail(n, "text of the rule is longer than %d bytes", syntax.MaxRuleLength)
	}
	return x.err == nil
}

func (x *text) leave() { x.depth-- }
