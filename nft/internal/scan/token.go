package scan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/weft-proxy/weft/nft/datatype"
)

// Pos is a line and byte column, both from 1. Zero means unknown.
type Pos struct {
	Line, Column int
}

// IsValid reports whether the place is known.
func (p Pos) IsValid() bool { return p.Line > 0 }

// Position returns p.
func (p Pos) Position() Pos { return p }

// Compare orders by line and column.
func (p Pos) Compare(o Pos) int {
	return cmp.Or(cmp.Compare(p.Line, o.Line), cmp.Compare(p.Column, o.Column))
}

// String returns "line:column", or "-" if unknown.
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
	EOF Kind = iota
	Newline
	// ";"
	Semicolon
	// a letter or "_", then letters, digits and "/-_."; may end in "*" and contain "\*"
	Ident
	// decimal or 0x-hexadecimal
	Number
	// IPv4, IPv6 or MAC address
	Addr
	// other word that begins with a digit, such as "5s", or a traffic class
	Word
	// quoted string; Text has no quotes
	String
	Punct
	// unexpected character, or line from an unclosed string; Text is the error
	Illegal
)

var kindNames = [...]string{
	EOF: "end of text", Newline: "end of line", Semicolon: `";"`, Ident: "name", Number: "number", Addr: "address",
	Word: "word", String: "string", Punct: "operator", Illegal: "illegal text",
}

// String names the kind.
func (k Kind) String() string { return kindNames[k] }

// Token is one token of the source.
type Token struct {
	Kind Kind
	// as written, but without quotes
	Text string
	Pos  Pos
	// in bytes, quotes included
	Offset, End int
}

// String describes the token.
func (t Token) String() string {
	switch t.Kind {
	case EOF, Newline, Semicolon:
		return t.Kind.String()
	default:
		return fmt.Sprintf("%q", t.Text)
	}
}

// Is compares operators and punctuation.
func (t Token) Is(texts ...string) bool {
	return t.Kind == Punct && slices.Contains(texts, t.Text)
}

// IsWord compares names and keywords.
func (t Token) IsWord(texts ...string) bool {
	return t.Kind == Ident && slices.Contains(texts, t.Text)
}

// EndsStatement reports whether a statement ends before the token.
func (t Token) EndsStatement() bool {
	return t.Kind == EOF || t.Kind == Newline || t.Kind == Semicolon || t.Is("}")
}

// Duration returns the token as a time with a unit.
func (t Token) Duration() (time.Duration, bool) {
	if t.Kind != Word {
		return 0, false
	}
	d, err := datatype.ParseDuration(t.Text)
	return d, err == nil
}
