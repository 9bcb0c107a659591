package kernel

import (
	"fmt"
	"strings"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/printable"
	"github.com/weft-proxy/weft/nft/ruleset"
	"github.com/weft-proxy/weft/nft/set"
)

const summaryElements = 4

// Describe returns an op as a command of nft(8) with all its elements.
func Describe(op Op) string { return describe(op, -1) }

func summarize(op Op, element int) string {
	only := func(all []set.Element) []set.Element {
		if element < 0 || element >= len(all) {
			return all
		}
		return all[element : element+1]
	}
	switch o := op.(type) {
	case AddElements:
		o.Elements = only(o.Elements)
		op = o
	case DeleteElements:
		o.Elements = only(o.Elements)
		op = o
	}
	return describe(op, summaryElements)
}

func describe(op Op, limit int) string {
	switch o := op.(type) {
	case AddTable:
		t := nft.Table{Comment: o.Comment}
		if o.Dormant {
			t.Flags = []string{"dormant"}
		}
		return declaration(o.Table, "table", o.Table.String(), t)
	case DeleteTable:
		return "delete table " + o.Table.String()
	case AddChain:
		return declaration(o.Table, "chain", o.Chain.Name, nft.Table{Chains: []nft.Chain{o.Chain.Declaration(o.Table.Family)}})
	case DeleteChain:
		return fmt.Sprintf("delete chain %s %s", o.Table, o.Name)
	case flushChain:
		return fmt.Sprintf("flush chain %s %s", o.Table, o.Name)
	case AddRule:
		return describeRule(o)
	case DeleteRule:
		return fmt.Sprintf("delete rule %s %s handle %d", o.Table, o.Chain, o.Handle.N)
	case AddSet:
		return describeSet(o)
	case DeleteSet:
		return fmt.Sprintf("delete set %s %s", o.Table, o.Name)
	case FlushSet:
		return fmt.Sprintf("flush set %s %s", o.Table, o.Name)
	case AddObject:
		decl := o.Object.Declaration()
		return declaration(o.Table, string(decl.Kind), decl.Name, nft.Table{Objects: []nft.Object{decl}})
	case DeleteObject:
		return fmt.Sprintf("delete %s %s %s", o.Ref.Kind, o.Table, o.Ref.Name)
	case AddFlowtable:
		return declaration(o.Table, "flowtable", o.Flowtable.Name, nft.Table{Flowtables: []nft.Flowtable{o.Flowtable.Declaration()}})
	case DeleteFlowtable:
		return fmt.Sprintf("delete flowtable %s %s", o.Table, o.Name)
	case AddElements:
		return describeElements("add", o.Table, o.Set, o.Elements, limit)
	case DeleteElements:
		return describeElements("delete", o.Table, o.Set, o.Elements, limit)
	default:
		return fmt.Sprintf("unknown op %T", op)
	}
}

// declaration returns the one-line command that adds the only object in t, or the table itself if t
// is empty. Foreign names may have any characters.
func declaration(id nft.TableID, noun, name string, t nft.Table) string {
	t.Family, t.Name = id.Family, id.Name
	_, body, _ := strings.Cut(ruleset.Format([]nft.Table{t}), noun+" "+name+" {\n")
	full := name
	if noun != "table" {
		full = id.String() + " " + name
	}
	var b strings.Builder
	fmt.Fprintf(&b, "add %s %s", noun, printable.Escape(full))
	before := " { "
	for line := range strings.Lines(body) {
		if line = strings.TrimSpace(line); line == "}" {
			break
		}
		b.WriteString(before + strings.TrimSuffix(line, ";"))
		before = "; "
	}
	if before == "; " {
		b.WriteString("; }")
	}
	return b.String()
}

func describeSet(o AddSet) string {
	decl := o.Set.Declaration()
	if o.Set.Map {
		return declaration(o.Table, "map", decl.Name, nft.Table{Maps: []nft.Map{nft.Map(decl)}})
	}
	return declaration(o.Table, "set", decl.Name, nft.Table{Sets: []nft.Set{decl}})
}

func describeRule(o AddRule) string {
	verb, place := "add", ""
	switch {
	case o.After == nil:
		verb = "insert"
	case o.After.N != 0:
		place = fmt.Sprintf(" handle %d", o.After.N)
	}
	text := o.Rule.Text
	if o.Rule.Comment != "" {
		text += fmt.Sprintf(" comment %q", nft.CommentText(o.Rule.Comment))
	}
	return fmt.Sprintf("%s rule %s %s%s %s", verb, o.Table, o.Chain, place, text)
}

func describeElements(verb string, table nft.TableID, set *set.Set, elements []set.Element, limit int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s element %s %s {", verb, table, set.Name)
	for i, e := range elements {
		if i > 0 {
			b.WriteByte(',')
		}
		if i == limit {
			fmt.Fprintf(&b, " ... (%d more)", len(elements)-limit)
			break
		}
		decl := nft.Element{Key: "*"}
		if e.Key != "" {
			decl.Key = set.FormatKey(e)
		}
		if verb == "add" {
			decl.Stateful, decl.Timeout, decl.Expires, decl.Comment = e.Stateful(), e.Timeout, e.Expires(), e.Comment
			if set.Map && e.Data != "" {
				decl.Value = set.FormatData(e)
			}
		}
		b.WriteString(" " + ruleset.FormatElement(&decl))
	}
	b.WriteString(" }")
	return b.String()
}
