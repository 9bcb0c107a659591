package syntax

import (
	"strings"

	"github.com/weft-proxy/weft/nft"
)

// fileTable is a table while its file is read. Chains, sets and maps are in
// the order of their first mention.
type fileTable struct {
	table  nft.Table
	chains []*nft.Chain
	sets   []*fileSet
	// chainIndex and setIndex are the places of names in them.
	chainIndex, setIndex map[string]int
}

// fileSet is a set or map while its file is read.
type fileSet struct {
	nft.Set
	isMap bool
}

// chain returns the chain of a name, or nil.
func (t *fileTable) chain(name string) *nft.Chain {
	if i, ok := t.chainIndex[name]; ok {
		return t.chains[i]
	}
	return nil
}

// set returns the set or map of a name, or nil.
func (t *fileTable) set(name string) *fileSet {
	if i, ok := t.setIndex[name]; ok {
		return t.sets[i]
	}
	return nil
}

// build returns the finished table.
func (t *fileTable) build() nft.Table {
	out := t.table
	for _, c := range t.chains {
		out.Chains = append(out.Chains, *c)
	}
	for _, s := range t.sets {
		if s.isMap {
			out.Maps = append(out.Maps, nft.Map(s.Set))
		} else {
			out.Sets = append(out.Sets, s.Set)
		}
	}
	return out
}

// refusedCommands are commands of nft that make no sense in a file which
// declares a ruleset, and why.
var refusedCommands = map[string]string{
	"include":  "give the files one by one: a published file cannot read others",
	"flush":    "remove it: publishing a file replaces what the last version of it declared",
	"delete":   "remove it: what the file does not declare is removed when it is published",
	"destroy":  "remove it: what the file does not declare is removed when it is published",
	"insert":   "use add and put the rule where it belongs",
	"replace":  "a file declares rules, it has no handles",
	"create":   "use add: publishing a file again must have the same result",
	"rename":   "declare the chain with its new name",
	"reset":    "a file declares rules, it cannot reset counters",
	"list":     "a file declares rules, it cannot ask for them",
	"monitor":  "a file declares rules, it cannot ask for them",
	"describe": "a file declares rules, it cannot ask for types",
	"export":   "a file declares rules, it cannot ask for them",
	"import":   "write the ruleset in nft's own syntax",
	"undefine": "use another name",
}

// refusedObjects are objects of nft that weft does not know yet.
var refusedObjects = map[string]bool{
	"counter": true, "quota": true, "limit": true, "ct": true, "secmark": true,
	"synproxy": true, "flowtable": true, "meter": true,
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
	p.acceptIdent("add")
	p.object()
	p.expectEnd()
	p.recover(0)
}

// object parses what an add command adds.
func (p *fileParser) object() {
	kind := p.tok
	switch word := p.expectIdent("table, chain, rule, set, map or element"); {
	case p.failed:
	case word == "table":
		id := p.tableID()
		if p.failed {
			return
		}
		t := p.addTable(id)
		if p.isPunct("{") {
			p.block(func() { p.tableStatement(t) })
		}
	case word == "chain":
		if t := p.existingTable(); t != nil {
			p.chain(t)
		}
	case word == "rule":
		p.addRule()
	case word == "set" || word == "map":
		if t := p.existingTable(); t != nil {
			p.set(t, word == "map")
		}
	case word == "element":
		p.addElements()
	case refusedObjects[word]:
		p.fail(kind, "%s objects are not supported", word)
	default:
		p.fail(kind, "unexpected %s: want table, chain, rule, set, map or element", kind)
	}
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

func (p *fileParser) addTable(id nft.TableID) *fileTable {
	t := p.tables[id]
	if t == nil {
		t = &fileTable{
			table:      nft.Table{Family: id.Family, Name: id.Name},
			chainIndex: map[string]int{}, setIndex: map[string]int{},
		}
		p.tables[id] = t
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
	t := p.tables[id]
	if t == nil {
		p.fail(at, "table %s is not declared: write \"add table %s\" before", id, id)
	}
	return t
}

// tableStatement parses one statement of a table block.
func (p *fileParser) tableStatement(t *fileTable) {
	at := p.tok
	switch word := p.expectIdent("chain, set, map or comment"); {
	case p.failed:
	case word == "chain":
		p.chain(t)
	case word == "set" || word == "map":
		p.set(t, word == "map")
	case word == "comment":
		p.setComment(at, &t.table.Comment)
	case word == "flags":
		p.fail(at, "table flags are not possible: a table that is published is active and owned by weft")
	case refusedObjects[word]:
		p.fail(at, "%s objects are not supported", word)
	case refusedCommands[word] != "":
		p.fail(at, "%s is not possible here: %s", word, refusedCommands[word])
	default:
		p.fail(at, "unexpected %s in a table: want chain, set, map or comment", at)
	}
}

// setComment parses the string of a comment; a second comment must be the
// same.
func (p *fileParser) setComment(at Token, dst *string) {
	if p.tok.Kind != String {
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

// chain parses "NAME [{ ... }]".
func (p *fileParser) chain(t *fileTable) {
	name := p.name("the name of a chain")
	if p.failed {
		return
	}
	c := t.chain(name)
	if c == nil {
		c = &nft.Chain{Name: name}
		t.chainIndex[name] = len(t.chains)
		t.chains = append(t.chains, c)
	}
	if p.isPunct("{") {
		p.block(func() { p.chainStatement(t, c) })
	}
}

// chainStatement parses one line of a chain block.
func (p *fileParser) chainStatement(t *fileTable, c *nft.Chain) {
	at := p.tok
	switch {
	case p.isIdent("type") && p.next.Kind == Ident:
		p.advance()
		p.base(at, c)
	case p.acceptIdent("policy"):
		p.once(at, "policy", &c.Policy, p.expectIdent("accept or drop"))
	case p.isIdent("comment"):
		p.advance()
		p.setComment(at, &c.Comment)
	case p.isIdent("flags"):
		p.fail(at, "chain flags are not supported")
	case p.isIdent("devices"):
		p.fail(at, "devices is not supported: declare a chain for each device")
	default:
		p.rule(t.table.Family, c)
	}
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

// base parses "filter hook input [device D] priority 0".
func (p *fileParser) base(at Token, c *nft.Chain) {
	typ := p.expectIdent("filter, nat or route")
	if !p.acceptIdent("hook") {
		p.unexpected("hook")
	}
	hook, device := p.expectIdent("a hook such as input"), ""
	if p.acceptIdent("device") {
		if p.tok.Kind != String && p.tok.Kind != Ident {
			p.unexpected("the name of a device")
		} else {
			device = p.tok.Text
			p.advance()
		}
	}
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
	p.once(at, "chain type", &c.Type, typ)
	p.once(at, "hook", &c.Hook, hook)
	p.once(at, "device", &c.Device, device)
	p.once(at, "priority", &c.Priority, priority)
}

// addRule parses "[family] TABLE CHAIN RULE" of an add command.
func (p *fileParser) addRule() {
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
	if p.tok.Kind == Ident && (p.tok.Text == "handle" || p.tok.Text == "position" || p.tok.Text == "index") {
		p.fail(p.tok, "%s is not possible here: rules take effect in the order of the file", p.tok.Text)
		return
	}
	p.rule(t.table.Family, c)
}

// rule parses one rule, which goes to the end of the line. Its text comes out
// in canonical form.
func (p *fileParser) rule(family nft.Family, c *nft.Chain) {
	start := p.tok
	if p.ends() {
		p.unexpected("a rule")
		return
	}
	if why, ok := refusedCommands[start.Text]; ok && start.Kind == Ident && p.next.Kind == Ident {
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
	r, err := ParseRule(family, p.src.text[start.Offset:p.end])
	if err != nil {
		pos, msg := Pos{1, 1}, err.Error()
		if e, ok := asError(err); ok {
			pos, msg = e.Pos, e.Msg
		}
		p.report(p.src.offsetOf(start.Offset, pos), "%s", msg)
		return
	}
	p.wanted.note(p, c, start.Offset)
	comment := r.Comment
	r.Comment = ""
	c.Rules = append(c.Rules, nft.Rule{Text: Print(r), Comment: comment})
}
