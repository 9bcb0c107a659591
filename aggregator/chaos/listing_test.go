package chaos

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// listRuleset reads all tables of a namespace as "nft list ruleset" prints
// them.
func listRuleset(ns *nfttest.NS) (ruleset, error) {
	text, err := ns.Output("", "nft", "list", "ruleset")
	if err != nil {
		return nil, err
	}
	return parseListing(text)
}

// listing reads what nft prints, line by line.
type listing struct {
	out ruleset
	// table is "family name"; object "chain c", "set s" or "map m"; both ""
	// outside of one.
	table, object string
	rules         int
	declaration   []string
	// elements collects the text between braces over several lines.
	elements   strings.Builder
	inElements bool
}

// parseListing turns a listing into the lines of merge.
func parseListing(text string) (ruleset, error) {
	l := &listing{out: ruleset{}}
	for line := range strings.Lines(text) {
		if err := l.line(strings.TrimSpace(line)); err != nil {
			return nil, err
		}
	}
	if l.table != "" {
		return nil, fmt.Errorf("parse listing: table %s has no end", l.table)
	}
	for id := range l.out {
		slices.Sort(l.out[id])
	}
	return l.out, nil
}

func (l *listing) say(what, value string) {
	l.out[l.table] = append(l.out[l.table], what+" = "+value)
}

func (l *listing) line(line string) error {
	switch {
	case line == "":
	case l.inElements:
		return l.more(line)
	case l.table == "":
		name, ok := strings.CutPrefix(line, "table ")
		name, open := strings.CutSuffix(name, " {")
		if name, _, _ = strings.Cut(name, " { #"); !ok || !(open || strings.Contains(line, "{ #")) {
			return fmt.Errorf("parse listing: want a table, got %q", line)
		}
		l.table = name
		l.say("table", "")
	case line == "}" && l.object != "":
		l.say(l.object, strings.Join(l.declaration, "; "))
		l.object, l.declaration = "", nil
	case line == "}":
		l.table = ""
	case l.object == "" && (strings.HasPrefix(line, "flags") || strings.HasPrefix(line, "comment ")):
		// Of the table: its owner, and the mark of weft.
	case l.object == "":
		name, ok := strings.CutSuffix(line, " {")
		if !ok {
			return fmt.Errorf("parse listing: want an object in table %s, got %q", l.table, line)
		}
		l.object, l.rules = name, 0
	case strings.HasPrefix(line, "elements = { "):
		l.inElements = true
		return l.more(strings.TrimPrefix(line, "elements = { "))
	case strings.HasPrefix(l.object, "chain ") && !strings.HasPrefix(line, "type "):
		l.say(fmt.Sprintf("%s rule %04d", l.object, l.rules), line)
		l.rules++
	default:
		l.declaration = append(l.declaration, line)
	}
	return nil
}

// more takes a line of elements.
func (l *listing) more(line string) error {
	text, last := strings.CutSuffix(line, " }")
	l.elements.WriteString(text)
	l.elements.WriteByte(' ')
	if !last {
		return nil
	}
	all := strings.TrimSpace(l.elements.String())
	l.elements.Reset()
	l.inElements = false
	for e := range strings.SplitSeq(all, ",") {
		if err := l.element(strings.TrimSpace(e)); err != nil {
			return err
		}
	}
	return nil
}

// elementText is a key, a comment perhaps, and a value perhaps.
var elementText = regexp.MustCompile(`^(\S+(?: \. \S+)*)( comment "[^"]*")?(?: : (.*))?$`)

func (l *listing) element(text string) error {
	m := elementText.FindStringSubmatch(text)
	if m == nil {
		return fmt.Errorf("parse listing: %s of table %s: element %q", l.object, l.table, text)
	}
	l.say(l.object+" element "+m[1], strings.TrimSpace(m[3]+m[2]))
	return nil
}
