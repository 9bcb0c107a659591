package scan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/weft-proxy/weft/nft/datatype"
)

// Pos is a place in the source text: line and byte column, both from 1. The zero value means an unknown
// place.
type Pos struct {
	Line, Column int
}

// IsValid reports whether the place is known.
func (p Pos) IsValid() bool { return p.Line > 0 }

// Position returns p. Nodes of a syntax tree embed a Pos for it.
func (p Pos) Position() Pos { return p }

// Compare orders places by line and column.
func (p Pos) Compare(o Pos) int {
	return cmp.Or(cmp.Compare(p.Line, o.Line), cmp.Compare(p.Column, o.Column))
}

// String returns "line:column", or "-" for an unknown place.
func (p Pos) String() string {
	if !p.IsValid() {
		return "-"
	}
	return fmt.Sprintf("%d:%d", p.Line, p.Column)
}

// Kind is the kind of a token.
type Kind uint8

// The kinds of tokens.
const (
	// end of the text
	EOF Kind = iota
	// end of a line without a continuing backslash
	Newline
	// ";"
	Semicolon
	// Ident is a name or keyword: a letter or "_", then letters, digits and "/-_.". It may end in "*" (an
	// interface wildcard) and contain "\*".
	Ident
	// decimal or 0x-hexadecimal number
	Number
	// IPv4, IPv6 or MAC address
	Addr
	// other word that begins with a digit, such as "5s"
	Word
	// quoted string, with a Text without quotes
	String
	// punctuation or operator
	Punct
	// unexpected character, or a line from an unclosed string, with the error message as Text
	Illegal
)

var kindNames = [...]string{
	EOF: "end of text", Newline: "end of line", Semicolon: `";"`, Ident: "name", Number: "number", Addr: "address",
	Word: "word", String: "string", Punct: "operator", Illegal: "illegal text",
}

// String returns the name of the kind for messages.
func (k Kind) String() string { return kindNames[k] }

// Token is one token of the source.
type Token struct {
	Kind Kind
	// token as written, for strings without the quotes
	Text string
	Pos  Pos
	// byte offsets in the source text, quotes included
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

// Is reports whether the token is one of the operators or punctuation marks.
func (t Token) Is(texts ...string) bool {
	return t.Kind == Punct && slices.Contains(texts, t.Text)
}

// IsWord reports whether the token is one of the names or keywords.
func (t Token) IsWord(texts ...string) bool {
	return t.Kind == Ident && slices.Contains(texts, t.Text)
}

// EndsStatement reports whether a statement ends before the token.
func (t Token) EndsStatement() bool {
	return t.Kind == EOF || t.Kind == Newline || t.Kind == Semicolon || t.Is("}")
}

// Duration returns the token as a time. As in nft, a time requires a unit: "30" is not a time.
func (t Token) Duration() (time.Duration, bool) {
	if t.Kind != Word {
		return 0, false
	}
	d, err := datatype.ParseDuration(t.Text)
	return d, err == nil
}
