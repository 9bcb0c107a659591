package syntax

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weft-proxy/weft/nft"
)

// MaxIndexed is the greatest number of rules of a chain in which a rule can be placed
// by its index: to move the others costs time.
const MaxIndexed = 4096

// chain parses "NAME [{ ... }]".
func (p *fileParser) chain(t *fileTable) {
	at := p.tok
	name := p.name("the name of a chain")
	if p.failed {
		return
	}
	p.places.enter(&t.table, "chain", name, at.Offset)
	c := t.chain(name)
	if c != nil && !p.mayExist(at, "chain "+name) {
		return
	}
	if c == nil {
		c = &fileChain{Chain: nft.Chain{Name: name}}
		t.chainIndex[name] = len(t.chains)
		t.chains = append(t.chains, c)
	}
	if p.isPunct("{") {
		p.block(func() { p.chainStatement(t, c) })
	}
}

// chainStatement parses one line of a chain block.
func (p *fileParser) chainStatement(t *fileTable, c *fileChain) {
	at := p.tok
	switch {
	case p.isIdent("type") && p.next.Kind == Ident:
		p.advance()
		p.base(at, &c.Chain)
	case p.acceptIdent("policy"):
		p.once(at, "policy", &c.Policy, p.expectIdent("accept or drop"))
	case p.isIdent("comment"):
		p.advance()
		p.setComment(at, &c.Comment)
	case p.acceptIdent("flags"):
		p.flagsOffload(&c.Flags)
	default:
		p.rule(t, c, rulePlace{})
	}
}

// flagsOffload parses what stands behind "flags" in a chain or flowtable.
func (p *fileParser) flagsOffload(flags *[]string) {
	at := p.tok
	if word := p.expectIdent("offload"); !p.failed && word != "offload" {
		p.fail(at, "unknown flag %q: want offload", word)
	}
	*flags = []string{"offload"}
}

// once sets an attribute that may be repeated only with the same value.
func (p *fileParser) once(at Token, what string, dst *string, value string) {
	if p.failed {
		return
	}
	if *dst != "" && *dst != value {
		p.fail(at, "%s is given twice: %s and %s", what, *dst, value)
		return
	}
	*dst = value
}

// base parses "filter hook input [device D | devices = { ... }] priority 0".
func (p *fileParser) base(at Token, c *nft.Chain) {
	typ := p.expectIdent("filter, nat or route")
	if !p.acceptIdent("hook") {
		p.unexpected("hook")
	}
	hook, device := p.expectIdent("a hook such as input"), ""
	var devices []string
	switch {
	case p.acceptIdent("device"):
		device = p.device()
	case p.acceptIdent("devices"):
		p.expectPunct("=")
		devices = p.deviceList(nil)
	}
	priority := p.priority()
	p.once(at, "chain type", &c.Type, typ)
	p.once(at, "hook", &c.Hook, hook)
	p.once(at, "device", &c.Device, device)
	p.once(at, "priority", &c.Priority, priority)
	switch {
	case p.failed || devices == nil:
	case c.Devices != nil && !slices.Equal(c.Devices, devices):
		p.fail(at, "devices are given twice")
	default:
		c.Devices = devices
	}
}

// priority parses "priority NUMBER" or "priority NAME [+|- NUMBER]".
func (p *fileParser) priority() string {
	if !p.acceptIdent("priority") {
		p.unexpected("priority")
	}
	priority := p.text(false)
	if !p.failed && priority == "" {
		p.unexpected("a priority such as 0 or \"dstnat - 10\"")
	}
	// "- 10" is nft's spelling of -10 too.
	if rest, ok := strings.CutPrefix(priority, "- "); ok {
		priority = "-" + rest
	}
	return priority
}

// device parses the name of a device.
func (p *fileParser) device() string {
	if p.failed {
		return ""
	}
	if p.tok.Kind != String && p.tok.Kind != Ident {
		p.unexpected("the name of a device")
		return ""
	}
	name := p.tok.Text
	p.advance()
	return name
}

// deviceList parses "{ DEVICE, ... }" and appends to list. Braces inside of the
// braces come from variables.
func (p *fileParser) deviceList(list []string) []string {
	open := p.tok
	p.expectPunct("{")
	if p.depth++; p.depth > MaxDepth {
		p.fail(open, "nested deeper than %d levels", MaxDepth)
	}
	defer func() { p.depth-- }()
	for p.skipNewlines(); !p.failed && !p.acceptPunct("}"); p.skipNewlines() {
		if p.isPunct("{") {
			list = p.deviceList(list)
		} else if name := p.device(); !p.failed {
			list = append(list, name)
		}
		p.skipNewlines()
		if !p.failed && !p.acceptPunct(",") && !p.isPunct("}") {
			p.unexpected("\",\" or \"}\"")
		}
	}
	return list
}

// rulePlace is where a rule goes; the zero value is the end of the chain.
type rulePlace struct {
	// insert is true for the head, or the place before rule number index.
	insert bool
	// indexed is true where there is an index.
	indexed bool
	index   int
}

// addRule parses "[family] TABLE CHAIN [index N] RULE" of an add or insert command.
func (p *fileParser) addRule(insert bool) {
	t := p.existingTable()
	at := p.tok
	name := p.name("the name of a chain")
	if p.failed {
		return
	}
	c := t.chain(name)
	if c == nil {
		p.fail(at, "chain %s of table %s is not declared: write \"add chain %s %s\" before", name, t.table.ID(), t.table.ID(), name)
		return
	}
	place := rulePlace{insert: insert}
	if p.tok.Kind == Ident && p.next.Kind == Number {
		switch p.tok.Text {
		case "handle", "position":
			p.fail(p.tok, "%s is not possible here: a file declares rules, they have no handles", p.tok.Text)
			return
		case "index":
			p.index(c, &place)
		}
	}
	if !p.failed {
		p.rule(t, c, place)
	}
}

// index parses "index N" of a rule that is in the chain already.
func (p *fileParser) index(c *fileChain, place *rulePlace) {
	p.advance()
	n, err := ParseNumber(p.tok.Text, 31)
	rules := len(c.head) + len(c.tail)
	switch {
	case err != nil || int(n) >= rules:
		p.fail(p.tok, "there is no rule of index %s: the file has %d rules of chain %s before this one", p.tok.Text, rules, c.Name)
	case rules >= MaxIndexed:
		p.fail(p.tok, "index is not possible in a chain of more than %d rules", MaxIndexed)
	}
	place.indexed, place.index = true, int(n)
	p.advance()
}

// rule parses one rule, which goes to the end of the line. Its text comes out
// in canonical form.
func (p *fileParser) rule(t *fileTable, c *fileChain, place rulePlace) {
	start := p.tok
	if p.ends() {
		p.unexpected("a rule")
		return
	}
	if why, ok := refusedInBlock(start, p.next); ok {
		p.fail(start, "%s is not possible here: %s", start.Text, why)
		return
	}
	for braces := p.braces; p.tok.Kind != EOF && (p.braces > braces || !p.ends()); {
		p.advance()
	}
	if start.Offset <= p.bad && p.bad <= p.tok.Offset {
		// What the scanner refused is reported already.
		return
	}
	r, err := ParseRule(t.table.Family, p.src.text[start.Offset:p.end])
	if err != nil {
		p.reportInside(start.Offset, err)
		return
	}
	if len(c.head)+len(c.tail) == 0 {
		t.filled = append(t.filled, c)
	}
	comment := r.Comment
	r.Comment = ""
	c.put(place, fileRule{Rule: nft.Rule{Text: Print(r), Comment: comment}, start: start.Offset, end: p.end})
}

// put adds a rule.
func (c *fileChain) put(place rulePlace, r fileRule) {
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

// reportInside records the error of a parser of the text that begins at an offset.
func (p *fileParser) reportInside(offset int, err error) {
	pos, msg := Pos{1, 1}, err.Error()
	if e, ok := asError(err); ok {
		pos, msg = e.Pos, e.Msg
	}
	p.report(p.src.offsetOf(offset, pos), "%s", msg)
}

// mayExist fails where a create command creates what is there already.
func (p *fileParser) mayExist(at Token, what string) bool {
	if p.creating {
		p.fail(at, "%s exists already: the file declares it before", what)
	}
	return !p.failed
}

// declares is a message about something that the file has not declared.
func declares(what string, id nft.TableID) string {
	return fmt.Sprintf("%s of table %s is not declared", what, id)
}
