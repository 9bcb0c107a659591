package ruleset

import (
	"fmt"
	"hash/fnv"
	"strconv"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/syntax"
)

// The name of an anonymous chain, "jump { ... }", depends on the outer chain's name and its own
// content, so a changed chain leaves other rules unchanged.

// maxAnonymousPrefix is the most bytes of an inner chain's name taken from the outer name.
const maxAnonymousPrefix = 128

// anonymous parses a chain inside a rule, and adds its name to the rule's text.
func (p *parser) anonymous(t *table, c *chain, r *rule) {
	open := p.Tok
	a := &chain{Chain: nft.Chain{Name: c.Name[:min(len(c.Name), maxAnonymousPrefix)]}, anonymous: true}
	if p.depth++; p.depth > syntax.MaxDepth {
		p.Fail(open, "nested deeper than %d levels", syntax.MaxDepth)
	}
	hash, begin := fnv.New32a(), p.begin
	p.block(func() { p.rule(t, a, rulePlace{}) })
	p.depth--
	p.begin = begin
	for _, r := range a.rules() {
		fmt.Fprintf(hash, "%s\n%s\n", r.Text, r.Comment)
	}
	name := fmt.Sprintf("%s-%08x", a.Name, hash.Sum32())
	id := nft.TableID{Family: t.table.Family, Name: t.table.Name + "/" + name}
	if p.copies[id]++; p.copies[id] > 1 {
		name += "-" + strconv.Itoa(p.copies[id])
	}
	a.Name = name
	if p.positions.enter(&t.table, "chain", name, open.Offset); t.chains.get(name) != nil {
		p.Fail(open, "chain %s is declared before, and is the name of this one too: rename it", name)
	}
	t.chains.add(name, a)
	r.anonymous = append(r.anonymous, a)
	r.text += " " + name
	r.cut, r.shift = len(r.text), p.End-r.start-len(r.text)
}

// place converts a position in the rule's text to an offset in the expanded text.
func (r *rule) place(pos syntax.Pos) int {
	text := source{text: r.text}
	at := text.offsetOf(0, pos)
	if at >= r.cut {
		at += r.shift
	}
	return r.start + at
}
