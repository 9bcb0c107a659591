package syntax

import (
	"github.com/weft-proxy/weft/nft"
)

// refusedCommands are commands of nft that make no sense in a file which
// declares a ruleset, and why.
var refusedCommands = map[string]string{
	"include":  "a published file cannot read others: only the command that publishes it can",
	"replace":  "a file declares rules, they have no handles",
	"rename":   "declare the chain with its new name",
	"reset":    "a file declares rules, it cannot reset counters",
	"list":     "a file declares rules, it cannot ask for them",
	"get":      "a file declares rules, it cannot ask for them",
	"monitor":  "a file declares rules, it cannot ask for them",
	"describe": "a file declares rules, it cannot ask for types",
	"export":   "a file declares rules, it cannot ask for them",
	"import":   "write the ruleset in nft's own syntax",
}

// commandsOnly are the commands that stand outside of blocks alone.
var commandsOnly = map[string]bool{
	"add": true, "create": true, "insert": true, "delete": true, "destroy": true, "flush": true,
}

// refusedInBlock reports whether words in a block are a command, and says what is
// wrong with that. A statement of a rule can begin with the same words.
func refusedInBlock(word, next Token) (string, bool) {
	if word.Kind != Ident || next.Kind != Ident && (word.Text != "include" || next.Kind != String) || word.Text == "reset" && next.Text == "tcp" {
		return "", false
	}
	if commandsOnly[word.Text] {
		return "write it as a command, outside of the braces", true
	}
	why, ok := refusedCommands[word.Text]
	return why, ok
}

// command parses one command of the file.
func (p *fileParser) command() {
	p.skipEnds()
	if p.tok.Kind == EOF {
		return
	}
	start := p.tok
	if p.isPunct("}") {
		p.report(start.Offset, "unexpected \"}\": no block is open here")
		p.advance()
		return
	}
	if p.tok.Kind != Ident {
		p.unexpected("a command such as table or add")
		p.recover(0)
		return
	}
	if why, ok := refusedCommands[p.tok.Text]; ok {
		p.fail(start, "%s is not possible here: %s", p.tok.Text, why)
		p.recover(0)
		return
	}
	p.creating = false
	switch start.Text {
	case "add", "create":
		p.advance()
		p.creating = start.Text == "create"
		p.object()
	case "insert":
		p.advance()
		if !p.acceptIdent("rule") {
			p.unexpected("rule")
		}
		p.addRule(true)
	case "flush":
		p.advance()
		p.flush(start)
	case "delete", "destroy":
		p.advance()
		p.remove(start)
	default:
		p.object()
	}
	p.expectEnd()
	p.recover(0)
}

// object parses what an add or create command adds.
func (p *fileParser) object() {
	if p.bareRule() {
		p.addRule(false)
		return
	}
	kind := p.tok
	switch word := p.expectIdent("table, chain, rule, set, map, element, flowtable or an object such as counter"); {
	case p.failed:
	case word == "table":
		p.addTableCommand()
	case word == "chain":
		if t := p.existingTable(); t != nil {
			p.chain(t)
		}
	case word == "rule":
		p.addRule(false)
	case word == "set" || word == "map":
		if t := p.existingTable(); t != nil {
			p.addSet(t, word == "map")
		}
	case word == "element":
		p.addElements()
	case word == "flowtable":
		if t := p.existingTable(); t != nil {
			p.declareFlowtable(t)
		}
	case word == "meter":
		p.fail(kind, "meter is not possible here: write a set with the flag dynamic")
	default:
		if objectKind := p.objectKind(word); objectKind != "" {
			if t := p.existingTable(); t != nil {
				p.declareObject(t, objectKind, true)
			}
			return
		}
		p.fail(kind, "unexpected %s: want table, chain, rule, set, map, element, flowtable or an object such as counter", kind)
	}
}

// bareRule reports whether a command without a noun begins here: a rule, with the
// name of a table that is declared.
func (p *fileParser) bareRule() bool {
	if p.tok.Kind != Ident || p.next.Kind != Ident || p.creating {
		return false
	}
	if family, err := nft.ParseFamily(p.tok.Text); err == nil {
		return p.table(nft.TableID{Family: family, Name: p.next.Text}) != nil
	}
	switch p.tok.Text {
	case "table", "chain", "rule", "set", "map", "element", "flowtable", "ct", "meter":
		return false
	}
	return newBody(nft.ObjectKind(p.tok.Text)) == nil && p.table(nft.TableID{Family: nft.FamilyIP, Name: p.tok.Text}) != nil
}

// addTableCommand parses "[family] NAME [{ ... }]".
func (p *fileParser) addTableCommand() {
	at := p.tok
	id := p.tableID()
	if p.failed || p.table(id) != nil && !p.mayExist(at, "table "+id.String()) {
		return
	}
	t := p.addTable(id)
	p.creating = false
	if p.isPunct("{") {
		p.block(func() { p.tableStatement(t) })
	}
}

// addSet parses the declaration of a set or map by a command.
func (p *fileParser) addSet(t *fileTable, isMap bool) {
	if p.tok.Kind == Ident && t.set(p.tok.Text) != nil && !p.mayExist(p.tok, "set "+p.tok.Text) {
		return
	}
	p.set(t, isMap)
}

// tableID parses "[family] name".
func (p *fileParser) tableID() nft.TableID {
	family := nft.FamilyIP
	if p.tok.Kind == Ident && p.next.Kind == Ident {
		f, err := nft.ParseFamily(p.tok.Text)
		if err != nil {
			// "add rule x y accept" has no family.
			return nft.TableID{Family: family, Name: p.name("the name of a table")}
		}
		family = f
		p.advance()
	}
	return nft.TableID{Family: family, Name: p.name("the name of a table")}
}

// table returns the table of a name, or nil.
func (p *fileParser) table(id nft.TableID) *fileTable {
	if t := p.tables[id]; t != nil && t.flushes == p.flushes[id.Family] {
		return t
	}
	return nil
}

func (p *fileParser) addTable(id nft.TableID) *fileTable {
	t := p.table(id)
	if t == nil {
		t = newFileTable(id)
		t.flushes = p.flushes[id.Family]
		p.tables[id] = t
		p.mentioned[id] = true
		p.order = append(p.order, t)
	}
	return t
}

// existingTable parses the table of a command that adds something to it.
func (p *fileParser) existingTable() *fileTable {
	at := p.tok
	id := p.tableID()
	if p.failed {
		return nil
	}
	t := p.table(id)
	if t == nil {
		p.fail(at, "table %s is not declared: write \"add table %s\" before", id, id)
	}
	return t
}

// tableStatement parses one statement of a table block.
func (p *fileParser) tableStatement(t *fileTable) {
	at := p.tok
	switch word := p.expectIdent("chain, set, map, flowtable, flags, comment or an object such as counter"); {
	case p.failed:
	case word == "chain":
		p.chain(t)
	case word == "set" || word == "map":
		p.set(t, word == "map")
	case word == "flowtable":
		p.declareFlowtable(t)
	case word == "comment":
		p.setComment(at, &t.table.Comment)
	case word == "flags":
		p.tableFlags(t)
	case word == "meter":
		p.fail(at, "meter is not possible here: write a set with the flag dynamic")
	case refusedCommands[word] != "":
		p.fail(at, "%s is not possible here: %s", word, refusedCommands[word])
	case commandsOnly[word]:
		p.fail(at, "%s is not possible here: write it as a command, outside of the braces", word)
	default:
		if kind := p.objectKind(word); kind != "" {
			p.declareObject(t, kind, false)
			return
		}
		p.fail(at, "unexpected %s in a table: want chain, set, map, flowtable, flags, comment or an object such as counter", at)
	}
}

// tableFlags parses "flags dormant".
func (p *fileParser) tableFlags(t *fileTable) {
	at := p.tok
	switch word := p.expectIdent("dormant"); {
	case p.failed:
	case word == "owner":
		p.fail(at, "flag owner is not possible: a table that is published is owned by weft")
	case word != "dormant":
		p.fail(at, "unknown flag %q of a table: want dormant", word)
	default:
		t.table.Flags = []string{"dormant"}
	}
}

// setComment parses the text of a comment; a second comment must be the same.
func (p *fileParser) setComment(at Token, dst *string) {
	if p.failed {
		return
	}
	if p.tok.Kind != String && p.tok.Kind != Ident || p.src.fromVariable(p.tok.Offset) {
		p.unexpected("a comment in double quotes")
		return
	}
	if *dst != "" && *dst != p.tok.Text {
		p.fail(at, "comment is given twice")
		return
	}
	*dst = p.tok.Text
	p.advance()
}
