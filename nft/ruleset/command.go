package ruleset

import (
	"slices"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/internal/scan"
	"github.com/weft-proxy/weft/nft/syntax"
)

// rejected nft commands, with the reason
var refusedCommands = map[string]string{
	"include":  "a published file cannot read others: only the command that publishes it can",
	"replace":  "a file declares rules, which have no handles",
	"rename":   "declare the chain with its new name",
	"reset":    "a file declares rules, it cannot reset counters",
	"list":     "a file declares rules, it cannot ask for them",
	"get":      "a file declares rules, it cannot ask for them",
	"monitor":  "a file declares rules, it cannot ask for them",
	"describe": "a file declares rules, it cannot ask for types",
	"export":   "a file declares rules, it cannot ask for them",
	"import":   "write the ruleset in nft's own syntax",
}

// block is true inside the braces of a table or chain.
func refusal(word string, block bool) string {
	if block && slices.Contains([]string{"add", "create", "insert", "delete", "destroy", "flush"}, word) {
		return "write it as a command, outside of the braces"
	}
	return refusedCommands[word]
}

// Some words also begin a statement of a rule.
func refusedInBlock(word, next scan.Token) string {
	if word.Kind != scan.Ident || next.Kind != scan.Ident && (word.Text != "include" || next.Kind != scan.String) || word.Text == "reset" && next.Text == "tcp" {
		return ""
	}
	return refusal(word.Text, true)
}

func (p *parser) command() {
	p.SkipEnds()
	if p.Tok.Kind == scan.EOF {
		return
	}
	start := p.Tok
	p.begin = start.Offset
	if p.IsPunct("}") {
		p.report(start.Offset, "unexpected \"}\": no block is open here")
		p.outside()
		return
	}
	if p.Tok.Kind != scan.Ident {
		p.Unexpected("a command such as table or add")
		p.recover(0)
		return
	}
	if why := refusal(p.Tok.Text, false); why != "" {
		p.Fail(start, "%s is not possible here: %s", p.Tok.Text, why)
		p.recover(0)
		return
	}
	p.creating = false
	switch start.Text {
	case "add", "create":
		p.Advance()
		p.creating = start.Text == "create"
		p.object()
	case "insert":
		p.Advance()
		if !p.AcceptIdent("rule") {
			p.Unexpected("rule")
		}
		p.addRule(true)
	case "flush":
		p.Advance()
		p.flush(start)
	case "delete", "destroy":
		p.Advance()
		p.remove(start)
	default:
		p.object()
	}
	p.expectEnd()
	p.recover(0)
	if p.lost {
		p.outside()
	}
}

// outside skips a premature "}" and all tokens up to a command that cannot be in a block.
func (p *parser) outside() {
	p.lost, p.partial = false, true
	for begins := false; p.Tok.Kind != scan.EOF && !(begins && p.Tok.IsWord("table", "add", "create", "insert", "delete", "destroy", "flush")); {
		begins = p.Tok.EndsStatement()
		p.Advance()
	}
}

func (p *parser) object() {
	if p.bareRule() {
		p.addRule(false)
		return
	}
	at := p.Tok
	switch word := p.ExpectIdent("table, chain, rule, set, map, element, flowtable or an object such as counter"); {
	case p.Failed:
	case word == "table":
		p.addTableCommand()
	case word == "rule":
		p.addRule(false)
	case word == "element":
		p.addElements()
	case !p.declare(at, p.existingTable, true):
		p.Fail(at, "unexpected %s: want table, chain, rule, set, map, element, flowtable or an object such as counter", at)
	}
}

// declare returns false if keyword begins no declaration; find returns the table.
func (p *parser) declare(keyword scan.Token, find func() *table, command bool) bool {
	word := keyword.Text
	kind := p.objectKind(word)
	switch {
	case word == "meter":
		p.Fail(keyword, "meter is not possible here: write a set with the flag dynamic")
	case kind == "" && !keyword.IsWord("chain", "set", "map", "flowtable"):
		return p.Failed
	}
	t := find()
	switch {
	case t == nil || p.Failed:
	case kind != "":
		p.declareObject(t, kind, command)
	case word == "chain":
		p.chain(t)
	case word == "flowtable":
		p.declareFlowtable(t)
	default:
		p.set(t, word == "map")
	}
	return true
}

// "rule" may be missing before the name of a declared table.
func (p *parser) bareRule() bool {
	if p.Tok.Kind != scan.Ident || p.Ahead.Kind != scan.Ident || p.creating {
		return false
	}
	if family, err := nft.ParseFamily(p.Tok.Text); err == nil {
		return p.table(nft.TableID{Family: family, Name: p.Ahead.Text}) != nil
	}
	switch p.Tok.Text {
	case "table", "chain", "rule", "set", "map", "element", "flowtable", "ct", "meter":
		return false
	}
	return !nft.ObjectKind(p.Tok.Text).IsValid() && p.table(nft.TableID{Family: nft.FamilyIP, Name: p.Tok.Text}) != nil
}

func (p *parser) addTableCommand() {
	at := p.Tok
	id := p.tableID()
	if p.Failed || p.table(id) != nil && !p.mayExist(at, "table "+id.String()) {
		return
	}
	t := p.addTable(id)
	p.creating = false
	if p.IsPunct("{") {
		p.block(func() { p.tableStatement(t) })
	}
}

func (p *parser) tableID() nft.TableID {
	family := nft.FamilyIP
	if p.Tok.Kind == scan.Ident && p.Ahead.Kind == scan.Ident {
		f, err := nft.ParseFamily(p.Tok.Text)
		if err != nil {
			// "add rule x y accept" has no family.
			return nft.TableID{Family: family, Name: p.name("the name of a table")}
		}
		family = f
		p.Advance()
	}
	return nft.TableID{Family: family, Name: p.name("the name of a table")}
}

func (p *parser) existingTable() *table {
	at := p.Tok
	id := p.tableID()
	if p.Failed {
		return nil
	}
	t := p.table(id)
	switch {
	case t == nil && p.IsPunct("{"):
		p.Fail(at, "%s is in no table: a \"}\" before it is too much", id.Name)
		p.lost = true
	case t == nil:
		p.undeclared(at, "table "+id.String(), "table %s is not declared: write \"add table %s\" before", id, id)
	}
	return t
}

func (p *parser) tableStatement(t *table) {
	at := p.Tok
	switch word := p.ExpectIdent("chain, set, map, flowtable, flags, comment or an object such as counter"); {
	case p.Failed:
	case word == "comment":
		p.setComment(at, &t.table.Comment)
	case word == "flags":
		p.tableFlags(t)
	case word == "table":
		p.stop(at, "unexpected table in a table: a block before it is not closed, the rest of the file is not read")
	case refusal(word, true) != "":
		p.Fail(at, "%s is not possible here: %s", word, refusal(word, true))
	case syntax.Newer(at, p.Tok) != "":
		p.Fail(at, "%s", syntax.Newer(at, p.Tok))
	case !p.declare(at, func() *table { return t }, false):
		p.Fail(at, "unexpected %s in a table: want chain, set, map, flowtable, flags, comment or an object such as counter", at)
	}
}

func (p *reader) tableFlags(t *table) {
	at := p.Tok
	switch word := p.ExpectIdent("dormant"); {
	case p.Failed:
	case word == "owner", word == "persist":
		p.Fail(at, "flag %s is not possible: weft owns the tables that it publishes", word)
	case word != "dormant":
		p.Fail(at, "unknown flag %q of a table: want dormant", word)
	default:
		t.table.Flags = []string{"dormant"}
	}
}

// A second comment must equal the first.
func (p *reader) setComment(at scan.Token, dst *string) {
	if p.Failed {
		return
	}
	if p.Tok.Kind != scan.String && (p.Tok.Kind != scan.Ident || datatype.IsKeyword(p.Tok.Text, true)) || p.src.fromVariable(p.Tok.Offset) {
		p.Unexpected("a comment in double quotes")
		return
	}
	text := nft.ParseComment(p.Tok.Text)
	if *dst != "" && *dst != text {
		p.Fail(at, "comment is given twice")
		return
	}
	*dst = text
	p.Advance()
}
