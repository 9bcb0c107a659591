package json

import (
	"strings"

	"github.com/weft-proxy/weft/nft/internal/scan"
	"github.com/weft-proxy/weft/nft/syntax"
)

// writer writes statements and expressions in nft's own syntax. The parser of rules reads
// the result, so that JSON means what the text means.
type writer struct {
	b     strings.Builder
	depth int
	// presence is true while the selector at hand is compared with a boolean, which asks
	// whether the packet has the header.
	presence bool
	// err is the first error.
	err *syntax.Error
}

// fail records the first error.
func (x *writer) fail(n node, format string, args ...any) {
	if x.err == nil {
		x.err = n.errorf(format, args...)
	}
}

// str writes text as it is.
func (x *writer) str(text ...string) {
	for _, s := range text {
		x.b.WriteString(s)
	}
}

// separator writes sep between the items of a list: i is the index of the next item.
func (x *writer) separator(i int, sep string) {
	if i > 0 {
		x.str(sep)
	}
}

// quoted writes a string in quotes.
func (x *writer) quoted(n node) {
	s := n.text()
	if strings.ContainsAny(s, "\"\n") {
		x.fail(n, "%q cannot be written in nft: it contains quotes or line ends", s)
		return
	}
	x.str(`"`, s, `"`)
}

// wordChars are the characters of words.
const wordChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_[] "

// word writes one or two words of nft's vocabulary, such as a key.
func (x *writer) word(n node) {
	s := n.text()
	if s == "" || strings.Count(s, " ") > 1 || strings.Trim(s, wordChars) != "" {
		x.fail(n, "unexpected %s: want a word of nft", n.describe())
		return
	}
	x.str(s)
}

// phrase writes name and, with a blank before each, the words that are the given members
// of n. A member with a "?" after its name may be missing.
func (x *writer) phrase(name string, n node, members ...string) {
	x.str(name)
	for _, m := range members {
		key, optional := strings.CutSuffix(m, "?")
		if optional && n.get(key).v == nil {
			continue
		}
		x.str(" ")
		x.word(n.get(key))
	}
}

// words writes words, which may be one or a list. Before precedes the first word, and sep
// is between them.
func (x *writer) words(n node, before, sep string) {
	for i, w := range n.list() {
		if i == 0 {
			x.str(before)
		}
		x.separator(i, sep)
		x.word(w)
	}
}

// num writes a number.
func (x *writer) num(n node) { x.digits(n, n.number()) }

// num32 writes a number of 32 bits.
func (x *writer) num32(n node) { x.digits(n, n.number32()) }

func (x *writer) digits(n node, s string) {
	if s == "" {
		x.fail(n, "unexpected %s: want a number", n.describe())
	}
	x.str(s)
}

// name writes the name of an object. It may begin with "@".
func (x *writer) name(n node) {
	s := n.text()
	if !scan.IsName(strings.TrimPrefix(s, "@")) {
		x.fail(n, "unexpected %s: want a name", n.describe())
	}
	x.str(s)
}

// option writes " KEY NUMBER" if n has the member key.
func (x *writer) option(n node, key string) {
	if n.has(key) {
		x.str(" ", key, " ")
		x.num(n.get(key))
	}
}

// option32 is option for a number of 32 bits.
func (x *writer) option32(n node, key string) {
	if n.has(key) {
		x.str(" ", key, " ")
		x.num32(n.get(key))
	}
}

// member writes before and the expression that is a member of n, if there is one.
func (x *writer) member(n node, before, key string, f form) {
	if n.has(key) {
		x.str(before)
		x.expr(n.get(key), []form{f})
	}
}

// over writes "over " if the member inv is true.
func (x *writer) over(n node) {
	if inv, _ := n.get("inv").v.(bool); inv {
		x.str("over ")
	}
}

// enter limits the depth and the length. It returns false if nothing more is to be
// written. The caller calls leave in either case.
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
