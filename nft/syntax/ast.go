package syntax

import (
	"time"

	"github.com/weft-proxy/weft/nft"
)

// Rule is a parsed rule.
type Rule struct {
	Family  nft.Family
	Stmts   []Stmt
	Comment string
}

// TypeOf is a parsed typeof declaration: the selectors whose types a set's key
// and a map's data take.
type TypeOf struct {
	Key []Expr
	// Map is true when there is a ": DATA"; Verdict when that is "verdict".
	Map     bool
	Verdict bool
	// Interval is true for ": interval DATA".
	Interval bool
	Data     []Expr
}

// Expr is an expression.
type Expr interface {
	// Position returns where the expression begins.
	Position() Pos
	expr()
}

// Position is embedded in every node.
func (p Pos) Position() Pos { return p }

// Payload is a field of a packet header, such as "ip saddr".
type Payload struct {
	Pos
	Proto, Field string
	// FieldPos is where Field begins.
	FieldPos Pos
}

// RawPayload is payload by its place: "@th,16,16". Offset and Bits count bits.
type RawPayload struct {
	Pos
	// Base is ll, nh, th or ih.
	Base         string
	Offset, Bits uint32
}

// Meta is packet metadata: "meta mark", "iifname".
type Meta struct {
	Pos
	Key string
	// KeyPos is where Key begins: at Pos where there is no "meta" before it.
	KeyPos Pos
}

// CT is conntrack information: "ct state", "ct original ip saddr".
type CT struct {
	Pos
	// Dir is original, reply or empty.
	Dir string
	// L3 is ip, ip6 or empty.
	L3  string
	Key string
	// KeyPos is where Key begins.
	KeyPos Pos
}

// FIB is a lookup in the routing table: "fib daddr . iif type".
type FIB struct {
	Pos
	Inputs []string
	Result string
}

// Numgen is a number generator: "numgen random mod 3 offset 1".
type Numgen struct {
	Pos
	// Mode is random or inc.
	Mode        string
	Mod, Offset uint32
}

// Const is a constant, whose meaning depends on the type that it meets: a
// number, an address, a symbol such as "established", or a quoted string.
type Const struct {
	Pos
	Text   string
	Quoted bool
}

// Prefix is an address prefix: "10.0.0.0/8".
type Prefix struct {
	Pos
	X   Expr
	Len int
}

// Range is an inclusive range: "1024-2048".
type Range struct {
	Pos
	From, To Expr
}

// Concat is a concatenation: "ip saddr . tcp dport".
type Concat struct {
	Pos
	Parts []Expr
}

// List is a list of flags: "established,related".
type List struct {
	Pos
	Items []Expr
}

// Masked is the right side of a flag comparison: "syn / syn,ack".
type Masked struct {
	Pos
	Value, Mask Expr
}

// Binary is an operation on bits: Op is "&", "|", "^", "<<" or ">>".
type Binary struct {
	Pos
	Op   string
	X, Y Expr
}

// SetRef names a set or map: "@blocked".
type SetRef struct {
	Pos
	Name string
}

// Set is an anonymous set or map: "{ 22, 80 }", "{ 80 : accept }".
type Set struct {
	Pos
	Elems []*Elem
}

// Elem is an element of an anonymous set, or what a dynamic statement puts
// into a named one.
type Elem struct {
	Pos
	// Key is a Const, Prefix, Range, Concat or Wildcard, and any expression in
	// dynamic statements.
	Key Expr
	// Timeout is 0 when the element has none of its own, Expires what is left
	// of it if not all.
	Timeout, Expires time.Duration
	Comment          string
	// Stmts are the element's stateful statements.
	Stmts []Stmt
	// Value is a map's data; a *Verdict in verdict maps; nil in sets.
	Value Expr
}

// Wildcard is the "*" element, which matches what no other does.
type Wildcard struct{ Pos }

// Map is a lookup: "tcp dport map @ports". Its Table is a *Set or *SetRef.
type Map struct {
	Pos
	Key   Expr
	Table Expr
}

func (*Payload) expr()    {}
func (*RawPayload) expr() {}
func (*Meta) expr()       {}
func (*CT) expr()         {}
func (*FIB) expr()        {}
func (*Numgen) expr()     {}
func (*Const) expr()      {}
func (*Prefix) expr()     {}
func (*Range) expr()      {}
func (*Concat) expr()     {}
func (*List) expr()       {}
func (*Masked) expr()     {}
func (*Binary) expr()     {}
func (*SetRef) expr()     {}
func (*Set) expr()        {}
func (*Wildcard) expr()   {}
func (*Map) expr()        {}
func (*Verdict) expr()    {}
