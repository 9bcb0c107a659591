package ruleset

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/internal/scan"
	"github.com/weft-proxy/weft/nft/syntax"
)

// maxIndexed is the longest chain for "add rule ... index N", because moving rules costs time.
const maxIndexed = 4096

func (p *parser) chain(t *table) {
	at := p.Tok
	name := p.name("the name of a chain")
	if p.Failed {
		return
	}
	p.positions.enter(&t.table, "chain", name, at.Offset)
	c := t.chains.get(name)
	switch {
	case c != nil && c.anonymous:
		p.Fail(at, "chain %s is the name of a chain in braces before: rename this one", name)
		return
	case c != nil && !p.mayExist(at, "chain "+name):
		return
	}
	if c == nil {
		c = t.chains.add(name, &chain{Chain: nft.Chain{Name: name}})
	}
	if p.IsPunct("{") {
		p.block(func() { p.chainStatement(t, c) })
	}
}

func (p *parser) chainStatement(t *table, c *chain) {
	at := p.Tok
	switch {
	case p.IsIdent("type") && p.Ahead.Kind == scan.Ident:
		p.Advance()
		p.base(at, &c.Chain)
	case p.AcceptIdent("policy"):
		p.once(at, "policy", &c.Policy, p.ExpectIdent("accept or drop"))
	case p.IsIdent("comment"):
		p.Advance()
		p.setComment(at, &c.Comment)
	case p.AcceptIdent("flags"):
		p.flagsOffload(&c.Flags)
	case at.IsWord("chain", "table") && p.Ahead.Kind == scan.Ident:
		p.stop(at, "unexpected %s in a chain: a block before it is not closed, the rest of the file is not read", at.Text)
	default:
		p.rule(t, c, rulePlace{})
		return
	}
	p.positions.check(&t.table, "chain", c.Name, at.Offset)
}

func (p *reader) flagsOffload(flags *[]string) {
	at := p.Tok
	if word := p.ExpectIdent("offload"); !p.Failed && word != "offload" {
		p.Fail(at, "unknown flag %q: want offload", word)
	}
	*flags = []string{"offload"}
}

// A repetition must have the same value.
func (p *reader) once(at scan.Token, what string, dst *string, value string) {
	if p.Failed {
		return
	}
	if *dst != "" && *dst != value {
		p.Fail(at, "%s is given twice: %s and %s", what, *dst, value)
		return
	}
	*dst = value
}

func (p *reader) base(at scan.Token, c *nft.Chain) {
	typ := p.ExpectIdent("filter, nat or route")
	if !p.AcceptIdent("hook") {
		p.Unexpected("hook")
	}
	hook, device := p.ExpectIdent("a hook such as input"), ""
	var devices []string
	switch {
	case p.AcceptIdent("device"):
		device = p.ExpectText("the name of a device")
	case p.AcceptIdent("devices"):
		devices = p.deviceList()
	}
	priority := p.priority()
	p.once(at, "chain type", &c.Type, typ)
	p.once(at, "hook", &c.Hook, hook)
	p.once(at, "device", &c.Device, device)
	p.once(at, "priority", &c.Priority, priority)
	switch {
	case p.Failed || devices == nil:
	case c.Devices != nil && !slices.Equal(c.Devices, devices):
		p.Fail(at, "devices are given twice")
	default:
		c.Devices = devices
	}
}

func (p *reader) priority() string {
	if !p.AcceptIdent("priority") {
		p.Unexpected("priority")
	}
	priority := p.text(false)
	if !p.Failed && priority == "" {
		p.Unexpected("a priority such as 0 or \"dstnat - 10\"")
	}
	// nft also accepts "- 10" for -10.
	if rest, ok := strings.CutPrefix(priority, "- "); ok {
		priority = "-" + rest
	}
	return priority
}

func (p *reader) deviceList() []string {
	var list []string
	p.ExpectPunct("=")
	p.braces("devices", func() {
		if name := p.ExpectText("the name of a device"); !p.Failed {
			list = append(list, name)
		}
	})
	return list
}

// The zero value is the end of the chain.
type rulePlace struct {
	// at the start of the chain, or before rule index (from 0); otherwise at the end, or after it
	insert  bool
	indexed bool
	index   int
}

func (p *parser) addRule(insert bool) {
	t := p.existingTable()
	at := p.Tok
	name := p.name("the name of a chain")
	if p.Failed {
		return
	}
	c := t.chains.get(name)
	if c == nil {
		p.undeclared(at, fmt.Sprintf("chain %s of %s", name, t.table.ID()), "chain %s of table %s is not declared: write \"add chain %s %s\" before", name, t.table.ID(), t.table.ID(), name)
		return
	}
	place := rulePlace{insert: insert}
	if p.Tok.Kind == scan.Ident && p.Ahead.Kind == scan.Number {
		switch p.Tok.Text {
		case "handle", "position":
			p.Fail(p.Tok, "%s is not possible here: a file declares rules, which have no handles", p.Tok.Text)
			return
		case "index":
			p.index(c, &place)
		}
	}
	if !p.Failed {
		p.rule(t, c, place)
	}
}

func (p *parser) index(c *chain, place *rulePlace) {
	p.Advance()
	n, ok := datatype.ParseNumber(p.Tok.Text, 31)
	rules := len(c.head) + len(c.tail)
	switch {
	case !ok || int(n) >= rules:
		p.Fail(p.Tok, "there is no rule of index %s: the file has %d rules of chain %s before this one", p.Tok.Text, rules, c.Name)
	case rules >= maxIndexed:
		p.Fail(p.Tok, "index is not possible in a chain of more than %d rules", maxIndexed)
	}
	place.indexed, place.index = true, int(n)
	p.Advance()
}

// rule stores the canonical form.
func (p *parser) rule(t *table, c *chain, place rulePlace) {
	start := p.Tok
	if p.ends() {
		p.Unexpected("a rule")
		return
	}
	if why := refusedInBlock(start, p.Ahead); why != "" {
		p.Fail(start, "%s is not possible here: %s", start.Text, why)
		return
	}
	out, copied := rule{start: start.Offset}, start.Offset
	for braces := p.Braces; p.Tok.Kind != scan.EOF && (p.Braces > braces || !p.ends()); {
		jump := p.Braces == braces && p.Tok.IsWord("jump", "goto") && p.Ahead.Is("{")
		p.Advance()
		if jump {
			out.text += p.src.text[copied:p.End]
			p.anonymous(t, c, &out)
			copied = p.End
		}
	}
	out.text += p.src.text[copied:p.End]
	if p.Failed || p.faulty(start.Offset) {
		return
	}
	r, err := syntax.ParseRule(t.table.Family, out.text)
	if err != nil {
		p.reportInside(out.place, err)
		return
	}
	if len(c.head)+len(c.tail) == 0 {
		t.filled = append(t.filled, c)
	}
	for _, stmt := range r.Stmts {
		if d, ok := stmt.(*syntax.Dynamic); ok {
			if t.updated == nil {
				t.updated = map[string]bool{}
			}
			t.updated[d.Set.Name] = true
		}
	}
	comment := r.Comment
	r.Comment = ""
	out.Rule = nft.Rule{Text: syntax.Print(r), Comment: comment}
	c.put(place, out)
}

func (c *chain) put(place rulePlace, r rule) {
	switch {
	case place.indexed && place.insert:
		c.tail = slices.Insert(c.rules(), place.index, r)
	case place.indexed:
		c.tail = slices.Insert(c.rules(), place.index+1, r)
	case place.insert:
		c.head = append(c.head, r)
	default:
		c.tail = append(c.tail, r)
	}
}

func (p *parser) mayExist(at scan.Token, what string) bool {
	if p.creating {
		p.Fail(at, "%s exists already: the file has declared it before", what)
	}
	return !p.Failed
}

func (p *parser) notDeclared(at scan.Token, what string, t *table) {
	p.undeclared(at, what+" of "+t.table.ID().String(), "%s of table %s is not declared", what, t.table.ID())
}
