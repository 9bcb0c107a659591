package syntax

import "github.com/weft-proxy/weft/nft"

// FileRule is a rule as it stands in a file.
type FileRule struct {
	// Text is the rule as it was written, with variables expanded.
	Text   string
	src    *source
	offset int
}

// Error returns an error about Text as one about the file.
func (r *FileRule) Error(e *Error) *Error {
	return r.src.errorAt(r.src.offsetOf(r.offset, e.Pos), e.Msg)
}

// FindRule finds rule number n (from 0) of a chain in a file that ParseFile
// reads.
func FindRule(text string, table nft.TableID, chain string, n int) (*FileRule, bool) {
	_, places, _ := ParsePlaces("", text)
	return places.Rule(table, chain, n)
}

// ParsePlaces is ParseFile for a checker: beside an error it returns what it
// understood of the tables, and in any case where everything stands.
func ParsePlaces(name, text string) ([]nft.Table, *Places, error) {
	places := &Places{of: map[PlaceID]*place{}}
	if err := checkFileLength(name, len(text)); err != nil {
		return nil, places, err
	}
	p := newFileParser(text)
	p.places, places.parser = places, p
	p.parse()
	if len(p.errs) > 0 {
		return p.build(), places, &ErrorList{name, sortErrors(p.errs)}
	}
	return p.build(), places, nil
}

// Places says where the declarations of a file stand.
type Places struct {
	// parser has read the file; nil where that was not text.
	parser *fileParser
	of     map[PlaceID]*place
	// now is the declaration whose elements are being read.
	now *place
}

// PlaceID names a declaration: Kind is "chain", "set" (which maps are too), "flowtable"
// or that of an object.
type PlaceID struct {
	Table      nft.TableID
	Kind, Name string
}

// place is where a declaration and its elements stand, as offsets in the expanded
// text. An element can come from another place than the declaration.
type place struct {
	at    int
	parts []int
}

// Declared reports whether the file has a declaration, right or wrong.
func (p *Places) Declared(id PlaceID) bool { return p.of[id] != nil }

// Error makes an error about a declaration. Its place is unknown where the file
// has none.
func (p *Places) Error(id PlaceID, msg string) *Error {
	if d := p.of[id]; d != nil {
		return p.parser.src.errorAt(d.at, msg)
	}
	return &Error{Msg: msg}
}

// ElementError makes an error about element number n (from 0) of a set or map.
// Where the file has deleted elements it is about the set.
func (p *Places) ElementError(id PlaceID, n int, msg string) *Error {
	d := p.of[id]
	if d == nil || n >= len(d.parts) {
		return p.Error(id, msg)
	}
	if t := p.parser.table(id.Table); t == nil || t.set(id.Name) == nil || len(t.set(id.Name).Elements) != len(d.parts) {
		return p.Error(id, msg)
	}
	return p.parser.src.errorAt(d.parts[n], msg)
}

// Rule returns rule number n (from 0) of a chain as it was written.
func (p *Places) Rule(table nft.TableID, chain string, n int) (*FileRule, bool) {
	if p.parser == nil || p.parser.table(table) == nil {
		return nil, false
	}
	c := p.parser.table(table).chain(chain)
	if c == nil || n < 0 || n >= len(c.head)+len(c.tail) {
		return nil, false
	}
	r, src := c.rules()[n], p.parser.src
	return &FileRule{Text: src.text[r.start:r.end], src: src, offset: r.start}, true
}

// enter is called where a declaration, or what is added to one, begins. It does
// nothing for a nil receiver, as element.
func (p *Places) enter(table *nft.Table, kind, name string, at int) {
	if p == nil {
		return
	}
	id := PlaceID{table.ID(), kind, name}
	if p.of[id] == nil {
		p.of[id] = &place{at: at}
	}
	p.now = p.of[id]
}

// element is called for each element of a set.
func (p *Places) element(at int) {
	if p != nil && p.now != nil {
		p.now.parts = append(p.now.parts, at)
	}
}
