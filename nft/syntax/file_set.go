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
	s := &fileSet{Set: nft.Set{Name: name}, isMap: isMap}
	p.block(func() { p.setStatement(&s.Set) })
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
		x.Policy == y.Policy && x.AutoMerge == y.AutoMerge && x.Comment == y.Comment
}

// setStatement parses one line of the declaration of a set or map.
func (p *fileParser) setStatement(s *nft.Set) {
	at := p.tok
	switch word := p.expectIdent("type, typeof, flags, elements or another attribute of a set"); {
	case p.failed:
	case word == "type" || word == "typeof":
		p.typeLine(at, word, s)
	case word == "flags":
		p.flags(at, s)
	case word == "timeout":
		s.Timeout = p.duration()
	case word == "gc-interval":
		s.GCInterval = p.duration()
	case word == "size":
		s.Size = p.size()
	case word == "policy":
		p.once(at, word, &s.Policy, p.expectIdent("performance or memory"))
	case word == "auto-merge":
		s.AutoMerge = true
	case word == "comment":
		p.setComment(at, &s.Comment)
	case word == "elements":
		p.expectPunct("=")
		s.Elements = p.elements(s.Elements)
	default:
		p.fail(at, "unexpected %s in a set: want type, typeof, flags, timeout, gc-interval, size, policy, auto-merge, comment or elements", at)
	}
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
			if e := p.element(); !p.failed {
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

// element parses "KEY [timeout T] [comment C] [: VALUE]".
func (p *fileParser) element() nft.Element {
	var e nft.Element
	if e.Key = p.text(true, ":", ",", "}", "timeout", "expires", "comment", "counter", "limit", "quota"); e.Key == "" {
		p.unexpected("the key of an element")
		return e
	}
	for !p.failed && p.tok.Kind == Ident {
		at := p.tok
		p.advance()
		switch at.Text {
		case "timeout":
			e.Timeout = p.duration()
		case "comment":
			p.setComment(at, &e.Comment)
		case "expires":
			p.fail(at, "expires is not possible here: a file declares timeouts, not what is left of them")
		default:
			p.fail(at, "%s of elements is not supported", at.Text)
		}
		p.skipNewlines()
	}
	if !p.acceptPunct(":") {
		return e
	}
	p.skipNewlines()
	if e.Value = p.text(true, ",", "}"); e.Value == "" {
		p.unexpected("the value of an element")
	}
	return e
}
