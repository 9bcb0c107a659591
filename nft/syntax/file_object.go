package syntax

import (
	"slices"

	"github.com/weft-proxy/weft/nft"
)

// objectKind parses the kind of an object from its first word, which is consumed
// already. It is empty for anything else.
func (p *fileParser) objectKind(word string) nft.ObjectKind {
	kind := nft.ObjectKind(word)
	if word == "ct" {
		at := p.tok
		kind = nft.ObjectKind("ct " + p.expectIdent("helper, timeout or expectation"))
		if !p.failed && newBody(kind) == nil {
			p.fail(at, "unexpected %s: want helper, timeout or expectation", at)
		}
	}
	if p.failed || newBody(kind) == nil {
		return ""
	}
	return kind
}

// declareObject parses "NAME { ... }", and of a command also "NAME BODY" and a counter
// without a body.
func (p *fileParser) declareObject(t *fileTable, kind nft.ObjectKind, command bool) {
	at := p.tok
	o := nft.Object{Kind: kind, Name: p.name("the name of a " + string(kind))}
	p.places.enter(&t.table, string(kind), o.Name, at.Offset)
	switch {
	case p.failed:
		return
	case p.isPunct("{"):
		p.objectBlock(&o)
	case command && !p.ends():
		start := p.tok.Offset
		for !p.ends() {
			p.advance()
		}
		p.objectText(&o, start, p.src.text[start:p.end])
	case command && kind == nft.ObjectCounter:
	default:
		p.unexpected(`"{"`)
	}
	if p.failed {
		return
	}
	old := t.object(kind, o.Name)
	switch {
	case old == nil:
		t.objectIndex[objectName{kind, o.Name}] = len(t.objects)
		t.objects = append(t.objects, &o)
	case !p.mayExist(at, string(kind)+" "+o.Name):
	case old.Comment != "" && o.Comment != "" && old.Comment != o.Comment, old.Text != "" && o.Text != "" && old.Text != o.Text:
		p.report(at.Offset, "%s %s is declared before with another content", kind, o.Name)
	default:
		if o.Text != "" {
			old.Text = o.Text
		}
		if o.Comment != "" {
			old.Comment = o.Comment
		}
	}
}

// objectBlock parses the braces of an object: its body, and its comment somewhere
// in it.
func (p *fileParser) objectBlock(o *nft.Object) {
	open := p.tok
	p.advance()
	inside, start := p.braces, open.End
	var text []byte
	copied := start
	for p.braces > inside || !p.isPunct("}") {
		at := p.tok
		switch {
		case p.failed:
			return
		case at.Kind == EOF:
			p.fail(open, "block is not closed: add \"}\"")
			return
		case p.braces == inside && p.acceptIdent("comment"):
			p.setComment(at, &o.Comment)
			if p.failed {
				return
			}
			// Blanks in place of the comment keep the places of the rest.
			text = append(text, p.src.text[copied:at.Offset]...)
			text = append(text, slices.Repeat([]byte{' '}, p.end-at.Offset)...)
			copied = p.end
		default:
			p.advance()
		}
	}
	text = append(text, p.src.text[copied:p.tok.Offset]...)
	p.advance()
	if start <= p.bad && p.bad <= p.end {
		// What the scanner refused is reported already.
		return
	}
	p.objectText(o, start, string(text))
}

// objectText parses the body of an object, which begins at an offset.
func (p *fileParser) objectText(o *nft.Object, offset int, text string) {
	if !hasTokens(text) {
		return
	}
	body, err := ParseObject(o.Kind, text)
	if err != nil {
		p.reportInside(offset, err)
		return
	}
	o.Text = PrintObject(body)
}

// hasTokens reports whether there is anything but line ends, semicolons and comments.
func hasTokens(text string) bool {
	sc := NewScanner(text)
	for {
		t, err := sc.Next()
		if err != nil || t.Kind != Newline && t.Kind != Semicolon {
			return err != nil || t.Kind != EOF
		}
	}
}

// declareFlowtable parses "NAME { ... }".
func (p *fileParser) declareFlowtable(t *fileTable) {
	at := p.tok
	f := nft.Flowtable{Name: p.name("the name of a flowtable")}
	p.places.enter(&t.table, "flowtable", f.Name, at.Offset)
	p.block(func() { p.flowtableStatement(&f) })
	if p.failed {
		return
	}
	old := t.flowtable(f.Name)
	switch {
	case old == nil:
		t.flowtableIndex[f.Name] = len(t.flowtables)
		t.flowtables = append(t.flowtables, &f)
	case !p.mayExist(at, "flowtable "+f.Name):
	case old.Hook != f.Hook && f.Hook != "", old.Priority != f.Priority && f.Priority != "":
		p.report(at.Offset, "flowtable %s is declared before with another hook or priority", f.Name)
	default:
		for _, name := range f.Devices {
			if !slices.Contains(old.Devices, name) {
				old.Devices = append(old.Devices, name)
			}
		}
		old.Counter = old.Counter || f.Counter
		if f.Flags != nil {
			old.Flags = f.Flags
		}
	}
}

// flowtableStatement parses one line of a flowtable.
func (p *fileParser) flowtableStatement(f *nft.Flowtable) {
	at := p.tok
	switch word := p.expectIdent("hook, devices, counter or flags"); {
	case p.failed:
	case word == "hook":
		hook := p.expectIdent("ingress")
		priority := p.priority()
		p.once(at, "hook", &f.Hook, hook)
		p.once(at, "priority", &f.Priority, priority)
	case word == "devices":
		p.expectPunct("=")
		f.Devices = p.deviceList(nil)
	case word == "counter":
		f.Counter = true
	case word == "flags":
		p.flagsOffload(&f.Flags)
	default:
		p.fail(at, "unexpected %s in a flowtable: want hook, devices, counter or flags", at)
	}
}
