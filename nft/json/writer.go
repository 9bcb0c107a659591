package json

import (
	"strings"

	"github.com/weft-proxy/weft/nft/internal/scan"
	"github.com/weft-proxy/weft/nft/syntax"
)

// in nft's own syntax
type writer struct {
	b     strings.Builder
	depth int
	// compares a selector with a boolean: whether the packet has the header
	presence bool
	// the first
	err *syntax.Error
}

func (x *writer) fail(n node, format string, args ...any) {
	if x.err == nil {
		x.err = n.errorf(format, args...)
	}
}

func (x *writer) str(text ...string) {
	for _, s := range text {
		x.b.WriteString(s)
	}
}

func (x *writer) separator(i int, sep string) {
	if i > 0 {
		x.str(sep)
	}
}

func (x *writer) quoted(n node) {
	s := n.text()
	if strings.ContainsAny(s, "\"\n") {
		x.fail(n, "%q cannot be written in nft: it contains quotes or line ends", s)
		return
	}
	x.str(`"`, s, `"`)
}

const wordChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_[] "

// word writes one or two words of nft's vocabulary.
func (x *writer) word(n node) {
	s := n.text()
	if s == "" || strings.Count(s, " ") > 1 || strings.Trim(s, wordChars) != "" {
		x.fail(n, "unexpected %s: want a word of nft", n.describe())
		return
	}
	x.str(s)
}

func (x *writer) num(n node) { x.digits(n, n.number()) }

func (x *writer) digits(n node, s string) {
	if s == "" {
		x.fail(n, "unexpected %s: want a number", n.describe())
	}
	x.str(s)
}

// name writes a name, which may begin with "@".
func (x *writer) name(n node) {
	s := n.text()
	if !scan.IsName(strings.TrimPrefix(s, "@")) {
		x.fail(n, "unexpected %s: want a name", n.describe())
	}
	x.str(s)
}

// enter limits depth and length; false stops the writer. The caller calls leave in either case.
func (x *writer) enter(n node) bool {
	if x.depth++; x.depth > syntax.MaxDepth {
		x.fail(n, "nested deeper than %d levels", syntax.MaxDepth)
	}
	if x.b.Len() > syntax.MaxRuleLength {
		x.fail(n, "text of the rule is longer than %d bytes", syntax.MaxRuleLength)
	}
	return x.err == nil
}

func (x *writer) leave() { x.depth-- }
