package ruleset

import (
	"fmt"
	"slices"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/internal/scan"
	"github.com/weft-proxy/weft/nft/syntax"
)

func (p *parser) set(t *table, isMap bool) {
	at := p.Tok
	name := p.name("the name of a set or map")
	if p.Failed || t.sets.get(name) != nil && !p.mayExist(at, "set "+name) {
		return
	}
	p.positions.enter(&t.table, "set", name, at.Offset)
	s := &set{Set: nft.Set{Name: name}, isMap: isMap}
	p.block(func() { p.setStatement(s) })
	p.positions.check(&t.table, "set", name, at.Offset)
	old := t.sets.get(name)
	switch {
	case p.faulty(at.Offset):
		if old == nil {
			t.sets.add(name, s)
		}
	case s.Type == "" && s.TypeOf == "":
		p.report(at.Offset, "set %s has no type: add type or typeof", name)
	case old == nil:
		t.sets.add(name, s)
	case !sameDeclaration(old, s):
		p.report(at.Offset, "set %s is declared before with other attributes", name)
	default:
		old.Elements = append(old.Elements, s.Elements...)
	}
}

// sameDeclaration compares the sets without their elements.
func sameDeclaration(a, b *set) bool {
	x, y := &a.Set, &b.Set
	return a.isMap == b.isMap && x.Type == y.Type && x.TypeOf == y.TypeOf && slices.Equal(x.Flags, y.Flags) &&
		x.Timeout == y.Timeout && x.GCInterval == y.GCInterval && x.Size == y.Size &&
		slices.Equal(x.Stateful, y.Stateful) && x.Policy == y.Policy && x.AutoMerge == y.AutoMerge && x.Comment == y.Comment
}

func (p *bodies) setStatement(s *set) {
	at := p.Tok
	switch word := p.ExpectIdent("type, typeof, flags, elements or another attribute of a set"); {
	case p.Failed:
	case word == "type" || word == "typeof":
		p.typeLine(at, word, &s.Set)
	case word == "flags":
		p.flags(at, &s.Set)
	case word == "timeout":
		s.Timeout = p.ExpectTime()
	case word == "size":
		s.Size = uint32(p.ExpectNumber("a size", 32))
	case word == "policy":
		p.once(at, word, &s.Policy, p.ExpectIdent("performance or memory"))
	case word == "gc-interval" && !s.isMap:
		s.GCInterval = p.ExpectTime()
	case word == "auto-merge" && !s.isMap:
		s.AutoMerge = true
	case word == "gc-interval" || word == "auto-merge":
		p.Fail(at, "%s is not possible in a map: nft(8) accepts it only in sets", word)
	case word == "comment":
		p.setComment(at, &s.Comment)
	case word == "elements":
		p.ExpectPunct("=")
		s.Elements = p.elements(s.Elements)
	case slices.Contains(statefulWords[:], word):
		s.Stateful = append(s.Stateful, p.stateful(at, false)...)
	case syntax.Newer(at, p.Tok) != "":
		p.Fail(at, "%s", syntax.Newer(at, p.Tok))
	default:
		p.Fail(at, "unexpected %s in a set: want type, typeof, flags, timeout, gc-interval, size, policy, auto-merge, comment, elements, counter, limit, quota or ct count", at)
	}
}

var statefulWords = [...]string{"counter", "limit", "quota", "ct"}

// end an element's key
var elementStops = append([]string{":", ",", "}", "timeout", "expires", "comment"}, statefulWords[:]...)

// at is the first word, already consumed. With newlines, line ends count as blanks.
func (p *bodies) stateful(at scan.Token, newlines bool) []string {
	p.text(newlines, ":", ",", "}", "timeout", "expires", "comment")
	if p.Failed {
		return nil
	}
	list, err := syntax.ParseStateful(p.src.text[at.Offset:p.End])
	if err != nil {
		p.reportInside(func(pos syntax.Pos) int { return p.src.offsetOf(at.Offset, pos) }, err)
		return nil
	}
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = syntax.PrintStmt(s)
	}
	return out
}

func (p *bodies) typeLine(at scan.Token, word string, s *nft.Set) {
	text := p.text(false)
	switch {
	case p.Failed:
	case text == "":
		p.Unexpected("a type")
	case s.Type != "" || s.TypeOf != "":
		p.Fail(at, "the type is given twice")
	case word == "type":
		s.Type = text
	default:
		s.TypeOf = text
	}
}

func (p *bodies) flags(at scan.Token, s *nft.Set) {
	if len(s.Flags) > 0 {
		p.Fail(at, "flags are given twice")
		return
	}
	for !p.Failed {
		s.Flags = append(s.Flags, p.ExpectIdent("constant, interval, timeout or dynamic"))
		if !p.AcceptPunct(",") {
			return
		}
	}
}

func (p *parser) addElements() {
	t := p.existingTable()
	at := p.Tok
	name := p.name("the name of a set or map")
	if p.Failed {
		return
	}
	s := t.sets.get(name)
	if s == nil {
		p.undeclared(at, fmt.Sprintf("set %s of %s", name, t.table.ID()), "set %s of table %s is not declared: write \"add set %s %s { ... }\" before", name, t.table.ID(), t.table.ID(), name)
		return
	}
	p.positions.enter(&t.table, "set", name, at.Offset)
	s.Elements = p.elements(s.Elements)
}

func (p *bodies) elements(list []nft.Element) []nft.Element {
	p.braces("elements", func() {
		at := p.Tok.Offset
		if e := p.element(); !p.Failed {
			p.positions.element(at)
			list = append(list, e)
		}
	})
	return list
}

// Nested braces come from variables and are flattened.
func (p *reader) braces(what string, item func()) {
	open := p.Tok
	p.ExpectPunct("{")
	if p.depth++; p.depth > syntax.MaxDepth {
		p.Fail(open, "nested deeper than %d levels", syntax.MaxDepth)
	}
	defer func() { p.depth-- }()
	for p.SkipNewlines(); !p.Failed && !p.AcceptPunct("}"); p.SkipNewlines() {
		switch {
		case p.Tok.Kind == scan.EOF:
			p.Fail(open, "list of %s is not closed: add \"}\"", what)
		case p.IsPunct("{"):
			p.braces(what, item)
		default:
			item()
		}
		p.SkipNewlines()
		if !p.Failed && !p.AcceptPunct(",") && !p.IsPunct("}") {
			p.Unexpected("\",\" or \"}\"")
		}
	}
}

// element parses "KEY [statements] [timeout T] [expires T] [comment C] [: VALUE]".
func (p *bodies) element() nft.Element {
	var e nft.Element
	if e.Key = p.text(true, elementStops...); e.Key == "" {
		p.Unexpected("the key of an element")
		return e
	}
	if at := p.Tok; at.Kind == scan.Ident && slices.Contains(statefulWords[:], at.Text) && !p.Failed {
		p.Advance()
		e.Stateful = p.stateful(at, true)
	}
	p.elementOptions(&e)
	if !p.AcceptPunct(":") {
		return e
	}
	p.SkipNewlines()
	if e.Value = p.text(true, ",", "}"); e.Value == "" {
		p.Unexpected("the value of an element")
	}
	return e
}

func (p *bodies) elementOptions(e *nft.Element) {
	for !p.Failed && p.Tok.Kind == scan.Ident {
		at := p.Tok
		p.Advance()
		if why := syntax.Newer(at, p.Tok); why != "" {
			p.Fail(at, "%s", why)
		}
		switch at.Text {
		case "timeout":
			e.Timeout = p.ExpectTime()
		case "expires":
			e.Expires = p.ExpectTime()
		case "comment":
			p.setComment(at, &e.Comment)
		default:
			p.Fail(at, "unexpected %s in an element: want timeout, expires, comment, \":\", \",\" or \"}\"; statements come before them", at)
		}
		p.SkipNewlines()
	}
}
