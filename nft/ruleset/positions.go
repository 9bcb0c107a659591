package ruleset

import (
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/syntax"
)

// Rule is a rule as written in a file.
type Rule struct {
	// with values of variables and names of anonymous chains
	Text  string
	src   *source
	place func(syntax.Pos) int
}

// Error converts an error in Text to an error in the file.
func (r *Rule) Error(e *syntax.Error) *syntax.Error {
	return r.src.errorAt(r.place(e.Pos), e.Msg)
}

// ParsePositions is Parse with the positions of declarations. With an error it also returns the
// understood part.
func ParsePositions(name, text string) ([]nft.Table, *Positions, error) {
	positions := &Positions{of: map[DeclarationID]*position{}}
	if err := CheckLength(name, text); err != nil {
		return nil, positions, err
	}
	p := newParser(text)
	p.positions, positions.parser = positions, p
	p.parse()
	if len(p.errs) > 0 {
		return p.build(), positions, &ErrorList{name, sortErrors(p.errs)}
	}
	return p.build(), positions, nil
}

// Positions holds the positions of a file's declarations. The zero value is empty.
type Positions struct {
	// nil in the zero value
	parser *parser
	of     map[DeclarationID]*position
	// declaration whose elements are being read
	now *position
}

// DeclarationID names a declaration. Kind is "chain", "set" (also for maps), "flowtable" or the
// kind of an object.
type DeclarationID struct {
	Table      nft.TableID
	Kind, Name string
}

// offsets in the expanded text
type position struct {
	at int
	// of the elements
	parts []int
	// errors make the content unknown
	faulty bool
}

// Declared reports whether the file has the declaration, valid or not.
func (p *Positions) Declared(id DeclarationID) bool { return p.of[id] != nil }

// Faulty reports whether the declaration itself has an error, ignoring a chain's rules.
func (p *Positions) Faulty(id DeclarationID) bool { return p.of[id] != nil && p.of[id].faulty }

// Complete reports whether the whole file was read: names without a position are then undeclared.
func (p *Positions) Complete() bool {
	return p.parser != nil && !p.parser.partial && len(p.parser.errs) < MaxErrors
}

// Error returns an error about a declaration, with its position if known.
func (p *Positions) Error(id DeclarationID, msg string) *syntax.Error {
	if d := p.of[id]; d != nil {
		return p.parser.src.errorAt(d.at, msg)
	}
	return &syntax.Error{Msg: msg}
}

// ElementError returns an error about element n (from 0) of a set or map, or about the set if the
// file deletes some elements.
func (p *Positions) ElementError(id DeclarationID, n int, msg string) *syntax.Error {
	d := p.of[id]
	if d == nil || n >= len(d.parts) {
		return p.Error(id, msg)
	}
	if t := p.parser.table(id.Table); t == nil || t.sets.get(id.Name) == nil || len(t.sets.get(id.Name).Elements) != len(d.parts) {
		return p.Error(id, msg)
	}
	return p.parser.src.errorAt(d.parts[n], msg)
}

// Rule returns rule n (from 0) of a chain as written in the file.
func (p *Positions) Rule(table nft.TableID, chain string, n int) (*Rule, bool) {
	if p.parser == nil || p.parser.table(table) == nil {
		return nil, false
	}
	c := p.parser.table(table).chains.get(chain)
	if c == nil || n < 0 || n >= len(c.head)+len(c.tail) {
		return nil, false
	}
	r, src := &c.rules()[n], p.parser.src
	return &Rule{Text: r.text, src: src, place: r.place}, true
}

// enter is called at the start of a declaration or addition; it ignores a nil p.
func (p *Positions) enter(table *nft.Table, kind, name string, at int) {
	if p == nil {
		return
	}
	id := DeclarationID{table.ID(), kind, name}
	if p.of[id] == nil {
		p.of[id] = &position{at: at}
	}
	p.now = p.of[id]
}

// check is called at the end of a declaration, or of a part that begins at from.
func (p *Positions) check(table *nft.Table, kind, name string, from int) {
	if p != nil && p.parser.faulty(from) {
		p.of[DeclarationID{table.ID(), kind, name}].faulty = true
	}
}

func (p *Positions) element(at int) {
	if p != nil && p.now != nil {
		p.now.parts = append(p.now.parts, at)
	}
}
