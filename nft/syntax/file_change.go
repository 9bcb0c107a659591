package syntax

import (
	"github.com/weft-proxy/weft/nft"
)

// A file may change what it has declared itself. About what there was before it says
// nothing: publishing it replaces what its last version declared, and so to flush or
// delete a table at the head of a file, as files do that nft(8) loads again and again,
// is right and changes nothing.

// laterTable is a table that a command has flushed or deleted before it was declared.
type laterTable struct {
	id     nft.TableID
	offset int
	verb   string
}

// checkLater reports commands about tables that the file does not declare at all.
func (p *fileParser) checkLater() {
	for _, l := range p.later {
		if !p.mentioned[l.id] {
			p.report(l.offset, "%s is not possible here: the file does not declare table %s, and publishing it leaves other tables alone", l.verb, l.id)
		}
	}
}

// declaredTable parses the table of a command that removes something. It returns nil
// where the table is not declared yet: there is nothing to remove then.
func (p *fileParser) declaredTable(verb Token) *fileTable {
	at := p.tok
	if at.Kind == Ident && at.Text == "handle" && p.next.Kind == Number {
		p.fail(at, "handle is not possible here: a file names what it declares")
		return nil
	}
	id := p.tableID()
	if p.failed {
		return nil
	}
	t := p.table(id)
	if t == nil && !p.mentioned[id] {
		p.later = append(p.later, laterTable{id, at.Offset, verb.Text})
	}
	return t
}

// flush parses the rest of a flush command.
func (p *fileParser) flush(verb Token) {
	at := p.tok
	switch word := p.expectIdent("ruleset, table, chain, set or map"); {
	case p.failed:
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
		p.flushChain(verb)
	case word == "set" || word == "map":
		t := p.declaredTable(verb)
		at := p.tok
		name := p.name("the name of a set or map")
		if p.failed || t == nil {
			return
		}
		if s := t.set(name); s != nil {
			s.flush()
		} else {
			p.fail(at, "%s", declares("set "+name, t.table.ID()))
		}
	default:
		p.fail(at, "unexpected %s: want ruleset, table, chain, set or map", at)
	}
}

// flushRuleset parses "[family]" and removes all tables, or those of the family.
func (p *fileParser) flushRuleset() {
	if p.tok.Kind != Ident {
		for _, f := range []nft.Family{nft.FamilyIP, nft.FamilyIP6, nft.FamilyInet, nft.FamilyARP, nft.FamilyBridge, nft.FamilyNetdev} {
			p.flushes[f]++
		}
		return
	}
	family, err := nft.ParseFamily(p.tok.Text)
	if err != nil {
		p.fail(p.tok, "%s", err)
		return
	}
	p.advance()
	p.flushes[family]++
}

func (p *fileParser) flushChain(verb Token) {
	t := p.declaredTable(verb)
	at := p.tok
	name := p.name("the name of a chain")
	if p.failed || t == nil {
		return
	}
	if c := t.chain(name); c != nil {
		c.flush()
	} else {
		p.fail(at, "%s", declares("chain "+name, t.table.ID()))
	}
}

// remove parses the rest of a delete or destroy command. What is not there is an
// error to delete, and none to destroy.
func (p *fileParser) remove(verb Token) {
	kind := p.tok
	word := p.expectIdent("table, chain, set, map, element, flowtable or an object such as counter")
	if p.failed {
		return
	}
	switch word {
	case "table":
		if t := p.declaredTable(verb); t != nil {
			delete(p.tables, t.table.ID())
		}
		return
	case "rule":
		p.fail(kind, "rule is not possible here: rules of a file have no handles; flush their chain, or do not declare them")
		return
	case "element":
		p.removeElements(verb)
		return
	}
	objectKind := p.objectKind(word)
	if objectKind == "" && word != "chain" && word != "set" && word != "map" && word != "flowtable" {
		p.fail(kind, "unexpected %s: want table, chain, set, map, element, flowtable or an object such as counter", kind)
	}
	t := p.declaredTable(verb)
	at := p.tok
	if at.Kind == Ident && at.Text == "handle" && p.next.Kind == Number {
		p.fail(at, "handle is not possible here: a file names what it declares")
	}
	name := p.name("the name of what is to be removed")
	if p.failed || t == nil {
		return
	}
	if p.isPunct("{") {
		p.fail(p.tok, "unexpected \"{\": to take devices out of a flowtable, declare it without them")
	} else if !t.remove(word, objectKind, name) && verb.Text == "delete" {
		p.fail(at, "%s", declares(kind.Text+" "+name, t.table.ID()))
	}
}

// remove removes something of a table and reports whether it was there.
func (t *fileTable) remove(word string, kind nft.ObjectKind, name string) bool {
	if kind != "" {
		key := objectName{kind, name}
		i, ok := t.objectIndex[key]
		if ok {
			t.objects[i] = nil
			delete(t.objectIndex, key)
		}
		return ok
	}
	index := t.setIndex
	switch word {
	case "chain":
		index = t.chainIndex
	case "flowtable":
		index = t.flowtableIndex
	}
	i, ok := index[name]
	if !ok {
		return false
	}
	switch word {
	case "chain":
		t.chains[i] = nil
	case "flowtable":
		t.flowtables[i] = nil
	default:
		t.sets[i] = nil
	}
	delete(index, name)
	return true
}

// removeElements parses "[family] TABLE SET { KEY, ... }" and removes the elements.
func (p *fileParser) removeElements(verb Token) {
	t := p.declaredTable(verb)
	at := p.tok
	name := p.name("the name of a set or map")
	list := p.elements(nil)
	if p.failed || t == nil {
		return
	}
	s := t.set(name)
	if s == nil {
		p.fail(at, "%s", declares("set "+name, t.table.ID()))
		return
	}
	for i := range list {
		if !s.remove(list[i].Key) && verb.Text == "delete" {
			p.fail(at, "element %s of set %s is not declared, or written in another way", list[i].Key, name)
			return
		}
	}
}
