package ruleset

import (
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/internal/scan"
)

// Publishing a file replaces its last version, so it may change only its own declarations. A flush
// or delete of tables at the start has no effect.

// flushed or deleted before its declaration
type laterTable struct {
	id     nft.TableID
	offset int
	verb   string
}

func (p *parser) checkLater() {
	for _, l := range p.later {
		if !p.partial && len(p.skipped) == 0 && !p.mentioned[l.id] {
			p.report(l.offset, "%s is not possible here: the file does not declare table %s, and publishing it leaves other tables alone", l.verb, l.id)
		}
	}
}

// declaredTable returns nil for a table that is not declared yet.
func (p *parser) declaredTable(verb scan.Token) *table {
	at := p.Tok
	if at.IsWord("handle") && p.Ahead.Kind == scan.Number {
		p.Fail(at, "handle is not possible here: a file names what it declares")
		return nil
	}
	id := p.tableID()
	if p.Failed {
		return nil
	}
	t := p.table(id)
	if t == nil && !p.mentioned[id] {
		p.later = append(p.later, laterTable{id, at.Offset, verb.Text})
	}
	return t
}

// The table is nil after an error, or if not declared yet.
func (p *parser) declaredName(verb scan.Token, want string) (t *table, at scan.Token, name string) {
	t = p.declaredTable(verb)
	at = p.Tok
	if at.IsWord("handle") && p.Ahead.Kind == scan.Number {
		p.Fail(at, "handle is not possible here: a file names what it declares")
	}
	name = p.name(want)
	if p.Failed {
		t = nil
	}
	return t, at, name
}

func (p *parser) flush(verb scan.Token) {
	at := p.Tok
	switch word := p.ExpectIdent("ruleset, table, chain, set or map"); {
	case p.Failed:
	case word == "ruleset":
		p.flushRuleset()
	case word == "table":
		if t := p.declaredTable(verb); t != nil {
			for _, c := range t.filled {
				c.flush()
			}
			t.filled = nil
		}
	case word == "chain":
		t, at, name := p.declaredName(verb, "the name of a chain")
		if t == nil {
			return
		}
		if c := t.chains.get(name); c != nil {
			c.flush()
		} else {
			p.notDeclared(at, "chain "+name, t)
		}
	case word == "set" || word == "map":
		t, at, name := p.declaredName(verb, "the name of a set or map")
		if t == nil {
			return
		}
		if s := t.sets.get(name); s != nil {
			s.flush()
		} else {
			p.notDeclared(at, "set "+name, t)
		}
	default:
		p.Fail(at, "unexpected %s: want ruleset, table, chain, set or map", at)
	}
}

// flushRuleset parses "[family]" and removes all its tables.
func (p *parser) flushRuleset() {
	if p.Tok.Kind != scan.Ident {
		for _, f := range []nft.Family{nft.FamilyIP, nft.FamilyIP6, nft.FamilyInet, nft.FamilyARP, nft.FamilyBridge, nft.FamilyNetdev} {
			p.flushes[f]++
		}
		return
	}
	family, err := nft.ParseFamily(p.Tok.Text)
	if err != nil {
		p.Fail(p.Tok, "%s", err)
		return
	}
	p.Advance()
	p.flushes[family]++
}

// Only delete requires an existing object.
func (p *parser) remove(verb scan.Token) {
	kind := p.Tok
	word := p.ExpectIdent("table, chain, set, map, element, flowtable or an object such as counter")
	if p.Failed {
		return
	}
	switch word {
	case "table":
		if t := p.declaredTable(verb); t != nil {
			delete(p.tables, t.table.ID())
		}
		return
	case "rule":
		p.Fail(kind, "rule is not possible here: rules of a file have no handles: flush their chain, or do not declare them")
		return
	case "element":
		p.removeElements(verb)
		return
	}
	objectKind := p.objectKind(word)
	if objectKind == "" && word != "chain" && word != "set" && word != "map" && word != "flowtable" {
		p.Fail(kind, "unexpected %s: want table, chain, set, map, element, flowtable or an object such as counter", kind)
	}
	t, at, name := p.declaredName(verb, "the name of the "+kind.Text+" to remove")
	if t == nil {
		return
	}
	if p.IsPunct("{") {
		p.Fail(p.Tok, "unexpected \"{\": to remove devices from a flowtable, declare it without them")
	} else if !t.remove(word, objectKind, name) && verb.Text == "delete" {
		p.notDeclared(at, kind.Text+" "+name, t)
	}
}

func (p *parser) removeElements(verb scan.Token) {
	t, at, name := p.declaredName(verb, "the name of a set or map")
	list := p.elements(nil)
	if p.Failed || t == nil {
		return
	}
	s := t.sets.get(name)
	if s == nil {
		p.notDeclared(at, "set "+name, t)
		return
	}
	for i := range list {
		if !s.remove(list[i].Key) && verb.Text == "delete" {
			p.Fail(at, "element %s of set %s is not declared, or is written in another way", list[i].Key, name)
			return
		}
	}
}
