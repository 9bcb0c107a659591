package syntax

import (
	"strings"
)

// jsonText writes what JSON says in nft's own words, which the parser of rules
// then reads: JSON means what the text means, whatever the parser learns.
type jsonText struct {
	b     strings.Builder
	depth int
	// presence is true where the selector at hand is asked for its presence.
	presence bool
	// err is the first error; nothing is written after it.
	err *Error
}

// fail records the first error.
func (x *jsonText) fail(n jsonNode, format string, args ...any) {
	if x.err == nil {
		x.err = n.errorf(format, args...)
	}
}

func (x *jsonText) str(s string) { x.b.WriteString(s) }

// quoted writes a quoted string.
func (x *jsonText) quoted(n jsonNode, s string) {
	if strings.ContainsAny(s, "\"\n") {
		x.fail(n, "%q cannot be written in nft: it has quotes or line ends", s)
		return
	}
	x.str(`"` + s + `"`)
}

// word writes words of nft's vocabulary, such as a key: at most two.
func (x *jsonText) word(n jsonNode) {
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
func (x *jsonText) num(n jsonNode) {
	s := n.number()
	if s == "" {
		x.fail(n, "unexpected %s: want a number", n.describe())
	}
	x.str(s)
}

// num32 writes a number of 32 bits.
func (x *jsonText) num32(n jsonNode) {
	s := n.number32()
	if s == "" {
		x.fail(n, "unexpected %s: want a number", n.describe())
	}
	x.str(s)
}

// name writes the name of an object, perhaps with "@" before it.
func (x *jsonText) name(n jsonNode) {
	s := n.text()
	if !isName(strings.TrimPrefix(s, "@")) {
		x.fail(n, "unexpected %s: want a name", n.describe())
	}
	x.str(s)
}

// isName reports whether the scanner takes text for one name.
func isName(text string) bool {
	tok, err := NewScanner(text).Next()
	return err == nil && tok.Kind == Ident && tok.End == len(text) && tok.Offset == 0
}

// option writes " WORD NUMBER" where the member is there.
func (x *jsonText) option(n jsonNode, key, word string) {
	if n.has(key) {
		x.str(" " + word + " ")
		x.num(n.get(key))
	}
}

// option32 is option for a number of 32 bits.
func (x *jsonText) option32(n jsonNode, key, word string) {
	if n.has(key) {
		x.str(" " + word + " ")
		x.num32(n.get(key))
	}
}

// enter and leave bound the depth.
func (x *jsonText) enter(n jsonNode) bool {
	if x.depth++; x.depth > MaxDepth {
		x.fail(n, "nested deeper than %d levels", MaxDepth)
	}
	if x.b.Len() > MaxRuleLength {
		x.fail(n, "text of the rule is longer than %d bytes", MaxRuleLength)
	}
	return x.err == nil
}

func (x *jsonText) leave() { x.depth-- }

// jsonKind says how constants beside a selector are written.
type jsonKind uint8

const (
	// kindPlain is for numbers and symbols.
	kindPlain jsonKind = iota
	// kindString is for what is quoted in nft.
	kindString
	// kindExists is for exists and missing.
	kindExists
	// kindSeconds is for times, which JSON has in seconds.
	kindSeconds
)

// stringKeys are the meta keys whose values are quoted.
const stringKeys = " iif oif iifname oifname ibrname obrname sdif sdifname iifkind oifkind ibriport obriport bri_iifname bri_oifname hour day time "

// kindsOf returns the kind of each part of a selector.
func kindsOf(n jsonNode) []jsonKind {
	name, arg, ok := n.only()
	if !ok {
		return nil
	}
	switch name {
	case "concat":
		var out []jsonKind
		for _, part := range arg.list() {
			kind := kindPlain
			if k := kindsOf(part); len(k) == 1 {
				kind = k[0]
			}
			out = append(out, kind)
		}
		return out
	case "meta":
		if key := arg.get("key").text(); key != "" && strings.Contains(stringKeys, " "+key+" ") {
			return []jsonKind{kindString}
		}
	case "osf":
		return []jsonKind{kindString}
	case "ct":
		switch arg.get("key").text() {
		case "helper":
			return []jsonKind{kindString}
		case "expiration":
			return []jsonKind{kindSeconds}
		}
	case "fib":
		if arg.get("result").text() == "oifname" {
			return []jsonKind{kindString}
		}
		return []jsonKind{kindExists}
	case "exthdr", "tcp option", "ip option", "sctp chunk":
		if !arg.has("field") {
			return []jsonKind{kindExists}
		}
	}
	return nil
}

// constant writes a number, string or boolean.
func (x *jsonText) constant(n jsonNode, kinds []jsonKind) {
	kind := kindPlain
	if len(kinds) == 1 {
		kind = kinds[0]
	}
	switch v := n.v.(type) {
	case bool:
		x.boolean(v, kind)
	case string:
		x.symbol(n, v, kind)
	default:
		x.num(n)
		if kind == kindSeconds {
			x.str("s")
		}
	}
}

// boolean writes true or false.
func (x *jsonText) boolean(v bool, kind jsonKind) {
	switch {
	case kind == kindExists && v:
		x.str("exists")
	case kind == kindExists:
		x.str("missing")
	case v:
		x.str("1")
	default:
		x.str("0")
	}
}

// symbol writes a string: a reference to a set, a word, or a quoted string.
func (x *jsonText) symbol(n jsonNode, s string, kind jsonKind) {
	tok, err := NewScanner(s).Next()
	switch {
	case strings.HasPrefix(s, "@") && isName(s[1:]):
		x.str(s)
	case kind != kindString && err == nil && tok.End == len(s) && tok.Offset == 0 && (tok.Kind == Ident || tok.Kind == Number || tok.Kind == Addr || tok.Kind == Word):
		x.str(s)
	default:
		x.quoted(n, s)
	}
}
