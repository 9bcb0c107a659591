package json

import (
	"strings"

	"github.com/weft-proxy/weft/nft/internal/scan"
	"github.com/weft-proxy/weft/nft/syntax"
)

// writer writes what JSON says in nft's own words, which the parser of rules
// then reads: JSON means what the text means, whatever the parser learns.
type writer struct {
	b     strings.Builder
	depth int
	// presence is true where the selector at hand is asked for its presence.
	presence bool
	// err is the first error; nothing is written after it.
	err *syntax.Error
}

// fail records the first error.
func (x *writer) fail(n node, format string, args ...any) {
	if x.err == nil {
		x.err = n.errorf(format, args...)
	}
}

func (x *writer) str(s string) { x.b.WriteString(s) }

// quoted writes a quoted string.
func (x *writer) quoted(n node, s string) {
	if strings.ContainsAny(s, "\"\n") {
		x.fail(n, "%q cannot be written in nft: it has quotes or line ends", s)
		return
	}
	x.str(`"` + s + `"`)
}

// word writes words of nft's vocabulary, such as a key: at most two.
func (x *writer) word(n node) {
	s := n.text()
	if s == "" || strings.Count(s, " ") > 1 || strings.Trim(s, wordChars) != "" {
		x.fail(n, "unexpected %s: want a word of nft", n.describe())
		return
	}
	x.str(s)
}

// wordChars are the characters of words.
const wordChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_[] "

// num writes a number.
func (x *writer) num(n node) {
	s := n.number()
	if s == "" {
		x.fail(n, "unexpected %s: want a number", n.describe())
	}
	x.str(s)
}

// num32 writes a number of 32 bits.
func (x *writer) num32(n node) {
	s := n.number32()
	if s == "" {
		x.fail(n, "unexpected %s: want a number", n.describe())
	}
	x.str(s)
}

// name writes the name of an object, perhaps with "@" before it.
func (x *writer) name(n node) {
	s := n.text()
	if !scan.IsName(strings.TrimPrefix(s, "@")) {
		x.fail(n, "unexpected %s: want a name", n.describe())
	}
	x.str(s)
}

// option writes " WORD NUMBER" where the member is there.
func (x *writer) option(n node, key, word string) {
	if n.has(key) {
		x.str(" " + word + " ")
		x.num(n.get(key))
	}
}

// option32 is option for a number of 32 bits.
func (x *writer) option32(n node, key, word string) {
	if n.has(key) {
		x.str(" " + word + " ")
		x.num32(n.get(key))
	}
}

// enter and leave bound the depth.
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

// form says how constants beside a selector are written.
type form uint8

const (
	// formPlain is for numbers and symbols.
	formPlain form = iota
	// formQuoted is for what is quoted in nft.
	formQuoted
	// formPresence is for exists and missing.
	formPresence
	// formSeconds is for times, which JSON has in seconds.
	formSeconds
)

// stringKeys are the meta keys whose values are quoted.
const stringKeys = " iif oif iifname oifname ibrname obrname sdif sdifname iifkind oifkind ibriport obriport bri_iifname bri_oifname hour day time "

// formsOf returns the kind of each part of a selector.
func formsOf(n node) []form {
	name, arg, ok := n.only()
	if !ok {
		return nil
	}
	switch name {
	case "concat":
		var out []form
		for _, part := range arg.list() {
			kind := formPlain
			if k := formsOf(part); len(k) == 1 {
				kind = k[0]
			}
			out = append(out, kind)
		}
		return out
	case "meta":
		if key := arg.get("key").text(); key != "" && strings.Contains(stringKeys, " "+key+" ") {
			return []form{formQuoted}
		}
	case "osf":
		return []form{formQuoted}
	case "ct":
		switch arg.get("key").text() {
		case "helper":
			return []form{formQuoted}
		case "expiration":
			return []form{formSeconds}
		}
	case "fib":
		if arg.get("result").text() == "oifname" {
			return []form{formQuoted}
		}
		return []form{formPresence}
	case "exthdr", "tcp option", "ip option", "sctp chunk":
		if !arg.has("field") {
			return []form{formPresence}
		}
	}
	return nil
}

// constant writes a number, string or boolean.
func (x *writer) constant(n node, forms []form) {
	kind := formPlain
	if len(forms) == 1 {
		kind = forms[0]
	}
	switch v := n.v.(type) {
	case bool:
		x.boolean(v, kind)
	case string:
		x.symbol(n, v, kind)
	default:
		x.num(n)
		if kind == formSeconds {
			x.str("s")
		}
	}
}

// boolean writes true or false.
func (x *writer) boolean(v bool, kind form) {
	switch {
	case kind == formPresence && v:
		x.str("exists")
	case kind == formPresence:
		x.str("missing")
	case v:
		x.str("1")
	default:
		x.str("0")
	}
}

// symbol writes a string: a reference to a set, a word, or a quoted string.
func (x *writer) symbol(n node, s string, kind form) {
	switch {
	case strings.HasPrefix(s, "@") && scan.IsName(s[1:]):
		x.str(s)
	case kind != formQuoted && scan.IsWord(s):
		x.str(s)
	default:
		x.quoted(n, s)
	}
}
