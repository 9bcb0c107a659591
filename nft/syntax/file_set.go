package syntax

import (
	"errors"
	"slices"
	"time"

	"github.com/weft-proxy/weft/nft"
)

func asError(err error) (*Error, bool) {
	var e *Error
	ok := errors.As(err, &e)
	return e, ok
}

// set parses "NAME { ... }", the declaration of a set or map.
func (p *fileParser) set(t *fileTable, isMap bool) {
	at := p.tok
	name := p.name("the name of a set or map")
	if p.failed {
		return
	}
	p.places.enter(&t.table, "set", name, at.Offset)
	s := &fileSet{Set: nft.Set{Name: name}, isMap: isMap}
	p.block(func() { p.setStatement(s) })
	if p.failed {
		return
	}
	old := t.set(name)
	switch {
	case s.Type == "" && s.TypeOf == "":
		p.report(at.Offset, "set %s has no type: add type or typeof", name)
	case old == nil:
		t.setIndex[name] = len(t.sets)
		t.sets = append(t.sets, s)
	case !sameDeclaration(old, s):
		p.report(at.Offset, "set %s is declared before with other attributes", name)
	default:
		old.Elements = append(old.Elements, s.Elements...)
	}
}

// sameDeclaration compares all but the elements.
func sameDeclaration(a, b *fileSet) bool {
	x, y := &a.Set, &b.Set
	return a.isMap == b.isMap && x.Type == y.Type && x.TypeOf == y.TypeOf && slices.Equal(x.Flags, y.Flags) &&
		x.Timeout == y.Timeout && x.GCInterval == y.GCInterval && x.Size == y.Size &&
		slices.Equal(x.Stateful, y.Stateful) && x.Policy == y.Policy && x.AutoMerge == y.AutoMerge && x.Comment == y.Comment
}

// setStatement parses one line of the declaration of a set or map.
func (p *fileParser) setStatement(s *fileSet) {
	at := p.tok
	switch word := p.expectIdent("type, typeof, flags, elements or another attribute of a set"); {
	case p.failed:
	case word == "type" || word == "typeof":
		p.typeLine(at, word, &s.Set)
	case word == "flags":
		p.flags(at, &s.Set)
	case word == "timeout":
		s.Timeout = p.duration()
	case word == "size":
		s.Size = p.size()
	case word == "policy":
		p.once(at, word, &s.Policy, p.expectIdent("performance or memory"))
	case word == "gc-interval" && !s.isMap:
		s.GCInterval = p.duration()
	case word == "auto-merge" && !s.isMap:
		s.AutoMerge = true
	case word == "gc-interval" || word == "auto-merge":
		p.fail(at, "%s is not possible in a map: nft(8) takes it in sets alone", word)
	case word == "comment":
		p.setComment(at, &s.Comment)
	case word == "elements":
		p.expectPunct("=")
		s.Elements = p.elements(s.Elements)
	case slices.Contains(statefulWords[:], word):
		s.Stateful = append(s.Stateful, p.stateful(at, false)...)
	default:
		p.fail(at, "unexpected %s in a set: want type, typeof, flags, timeout, gc-interval, size, policy, auto-merge, comment, elements, counter, limit, quota or ct count", at)
	}
}

// statefulWords begin the statements that keep a state.
var statefulWords = [...]string{"counter", "limit", "quota", "ct"}

// elementStops end the key of an element.
var elementStops = append([]string{":", ",", "}", "timeout", "expires", "comment"}, statefulWords[:]...)

// stateful parses statements that keep a state, of which the first word was read,
// and returns each in canonical form. Line ends count as blanks where newlines is
// true.
func (p *fileParser) stateful(at Token, newlines bool) []string {
	p.text(newlines, ":", ",", "}", "timeout", "expires", "comment")
	if p.failed {
		return nil
	}
	list, err := ParseStateful(p.src.text[at.Offset:p.end])
	if err != nil {
		pos, msg := Pos{1, 1}, err.Error()
		if e, ok := asError(err); ok {
			pos, msg = e.Pos, e.Msg
		}
		p.report(p.src.offsetOf(at.Offset, pos), "%s", msg)
		return nil
	}
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = PrintStmt(s)
	}
	return out
}

func (p *fileParser) typeLine(at Token, word string, s *nft.Set) {
	text := p.text(false)
	switch {
	case p.failed:
	case text == "":
		p.unexpected("a type")
	case s.Type != "" || s.TypeOf != "":
		p.fail(at, "the type is given twice")
	case word == "type":
		s.Type = text
	default:
		s.TypeOf = text
	}
}

func (p *fileParser) flags(at Token, s *nft.Set) {
	if len(s.Flags) > 0 {
		p.fail(at, "flags are given twice")
		return
	}
	for !p.failed {
		s.Flags = append(s.Flags, p.expectIdent("constant, interval, timeout or dynamic"))
		if !p.acceptPunct(",") {
			return
		}
	}
}

func (p *fileParser) duration() time.Duration {
	if p.failed {
		return 0
	}
	d, ok := p.tok.duration()
	if !ok {
		p.unexpected("a time such as 1h30m or 5s")
		return 0
	}
	p.advance()
	return d
}

func (p *fileParser) size() uint32 {
	if p.tok.Kind != Number {
		p.unexpected("a number")
		return 0
	}
	n, err := ParseNumber(p.tok.Text, 32)
	if err != nil {
		p.fail(p.tok, "size %s does not fit in 32 bits", p.tok.Text)
		return 0
	}
	p.advance()
	return uint32(n)
}

// addElements parses "[family] TABLE SET { ... }" of an add command.
func (p *fileParser) addElements() {
	t := p.existingTable()
	at := p.tok
	name := p.name("the name of a set or map")
	if p.failed {
		return
	}
	s := t.set(name)
	if s == nil {
		p.fail(at, "set %s of table %s is not declared: write \"add set %s %s { ... }\" before", name, t.table.ID(), t.table.ID(), name)
		return
	}
	p.places.enter(&t.table, "set", name, at.Offset)
	s.Elements = p.elements(s.Elements)
}

// elements parses "{ ELEMENT, ... }" and appends to list. Braces inside of the
// braces come from variables and are flattened.
func (p *fileParser) elements(list []nft.Element) []nft.Element {
	open := p.tok
	p.expectPunct("{")
	if p.depth++; p.depth > MaxDepth {
		p.fail(open, "nested deeper than %d levels", MaxDepth)
	}
	defer func() { p.depth-- }()
	for !p.failed {
		p.skipNewlines()
		switch {
		case p.acceptPunct("}"):
			return list
		case p.tok.Kind == EOF:
			p.fail(open, "list of elements is not closed: add \"}\"")
			return list
		case p.isPunct("{"):
			list = p.elements(list)
		default:
			at := p.tok.Offset
			if e := p.element(); !p.failed {
				p.places.element(at)
				list = append(list, e)
			}
		}
		p.skipNewlines()
		if !p.failed && !p.acceptPunct(",") && !p.isPunct("}") {
			p.unexpected("\",\" or \"}\"")
		}
	}
	return list
}

// element parses "KEY [statements] [timeout T] [expires T] [comment C] [: VALUE]".
func (p *fileParser) element() nft.Element {
	var e nft.Element
	if e.Key = p.text(true, elementStops...); e.Key == "" {
		p.unexpected("the key of an element")
		return e
	}
	if at := p.tok; at.Kind == Ident && slices.Contains(statefulWords[:], at.Text) && !p.failed {
		p.advance()
		e.Stateful = p.stateful(at, true)
	}
	p.elementOptions(&e)
	if !p.acceptPunct(":") {
		return e
	}
	p.skipNewlines()
	if e.Value = p.text(true, ",", "}"); e.Value == "" {
		p.unexpected("the value of an element")
	}
	return e
}

// elementOptions parses the times and the comment of an element.
func (p *fileParser) elementOptions(e *nft.Element) {
	for !p.failed && p.tok.Kind == Ident {
		at := p.tok
		p.advance()
		switch at.Text {
		case "timeout":
			e.Timeout = p.duration()
		case "expires":
			e.Expires = p.duration()
		case "comment":
			p.setComment(at, &e.Comment)
		default:
			p.fail(at, "unexpected %s in an element: want timeout, expires, comment, \":\", \",\" or \"}\"; statements stand before them", at)
		}
		p.skipNewlines()
	}
}
