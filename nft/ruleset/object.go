package ruleset

import (
	"slices"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/internal/scan"
	"github.com/weft-proxy/weft/nft/syntax"
)

// objectKind returns the kind that begins with word, or "".
func (p *bodies) objectKind(word string) nft.ObjectKind {
	kind := nft.ObjectKind(word)
	if word == "ct" {
		at := p.Tok
		kind = nft.ObjectKind("ct " + p.ExpectIdent("helper, timeout or expectation"))
		if !p.Failed && !kind.IsValid() {
			p.Fail(at, "unexpected %s: want helper, timeout or expectation", at)
		}
	}
	if p.Failed || !kind.IsValid() {
		return ""
	}
	return kind
}

// A command may also be "NAME BODY", or a counter without a body.
func (p *parser) declareObject(t *table, kind nft.ObjectKind, command bool) {
	at := p.Tok
	o := nft.Object{Kind: kind, Name: p.name("the name of a " + string(kind))}
	p.positions.enter(&t.table, string(kind), o.Name, at.Offset)
	switch {
	case p.Failed:
		return
	case p.IsPunct("{"):
		p.objectBlock(&o)
	case command && !p.ends():
		start := p.Tok.Offset
		for !p.ends() {
			p.Advance()
		}
		p.objectText(&o, start, p.src.text[start:p.End])
	case command && kind == nft.ObjectCounter:
	default:
		p.Unexpected(`"{"`)
	}
	p.positions.check(&t.table, string(kind), o.Name, at.Offset)
	if p.Failed {
		return
	}
	old := t.objects.get(objectName{kind, o.Name})
	switch {
	case old == nil:
		t.objects.add(objectName{kind, o.Name}, &o)
	case !p.mayExist(at, string(kind)+" "+o.Name):
	case old.Comment != "" && o.Comment != "" && old.Comment != o.Comment, old.Text != "" && o.Text != "" && old.Text != o.Text:
		p.report(at.Offset, "%s %s is declared before with other content", kind, o.Name)
	default:
		if o.Text != "" {
			old.Text = o.Text
		}
		if o.Comment != "" {
			old.Comment = o.Comment
		}
	}
}

// The body may contain the comment.
func (p *bodies) objectBlock(o *nft.Object) {
	open := p.Tok
	p.Advance()
	inside, start := p.Braces, open.End
	var text []byte
	copied := start
	for p.Braces > inside || !p.IsPunct("}") {
		at := p.Tok
		switch {
		case p.Failed:
			return
		case at.Kind == scan.EOF:
			p.Fail(open, "block is not closed: add \"}\"")
			return
		case p.Braces == inside && p.AcceptIdent("comment"):
			p.setComment(at, &o.Comment)
			if p.Failed {
				return
			}
			// Blanks keep the positions of the rest.
			text = append(text, p.src.text[copied:at.Offset]...)
			text = append(text, slices.Repeat([]byte{' '}, p.End-at.Offset)...)
			copied = p.End
		default:
			p.Advance()
		}
	}
	text = append(text, p.src.text[copied:p.Tok.Offset]...)
	p.Advance()
	if p.skips(start, p.End) {
		// already reported
		return
	}
	p.objectText(o, start, string(text))
}

func (p *bodies) objectText(o *nft.Object, offset int, text string) {
	if !hasTokens(text) {
		return
	}
	body, err := syntax.ParseObject(o.Kind, text)
	if err != nil {
		p.reportInside(func(pos syntax.Pos) int { return p.src.offsetOf(offset, pos) }, err)
		return
	}
	o.Text = syntax.PrintObject(body)
}

// hasTokens ignores line ends, semicolons and comments.
func hasTokens(text string) bool {
	sc := scan.New(text)
	for {
		if t := sc.Next(); t.Kind != scan.Newline && t.Kind != scan.Semicolon {
			return t.Kind != scan.EOF
		}
	}
}
