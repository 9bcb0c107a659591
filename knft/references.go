package knft

import (
	"regexp"
	"strings"
)

// check finds what the text of a rule or verdict refers to and is not there: as in nft(8),
// it must be there when the rule comes.
func (c *change) check(t *table, text string) error {
	for _, id := range references(text) {
		if t.items[id] != nil {
			continue
		}
		if _, err := c.elsewhere(t, id.kind, id.name); err != nil {
			return err
		}
	}
	return nil
}

// references finds the names of sets and chains in a rule's text. It knows words and strings, not the
// grammar: the aggregator judges the text itself.
func references(text string) []itemID {
	var out []itemID
	var last, before string
	for _, at := range ruleWord.FindAllStringIndex(text, -1) {
		word := text[at[0]:at[1]]
		switch {
		case word[0] == '@':
			// "@th,16,8" is a part of the packet, and what flows are added to is a
			// flowtable, which the aggregator looks for.
			if flow := before == "flow" && (last == "add" || last == "offload"); !flow && !strings.HasPrefix(text[at[1]:], ",") {
				out = append(out, itemID{kindSet, word[1:]})
			}
		case (last == "jump" || last == "goto") && chainName.MatchString(word):
			out = append(out, itemID{kindChain, word})
		}
		before, last = last, word
	}
	return out
}

var (
	// ruleWord is a string with its quotes, a name, with an @ if it is that of a set, or one
	// other character.
	ruleWord  = regexp.MustCompile(`"[^"]*"?|[@\w.][\w./-]*|\S`)
	chainName = regexp.MustCompile(`^[A-Za-z_.]`)
)
