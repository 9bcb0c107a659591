package knft

import (
	"regexp"
	"strings"
)

// check requires an object before its references, as in nft(8).
func (c *transaction) check(t *table, text string) error {
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

func references(text string) []itemID {
	var out []itemID
	var last, before string
	for _, at := range ruleWord.FindAllStringIndex(text, -1) {
		word := text[at[0]:at[1]]
		switch {
		case word[0] == '@':
			// "@th,16,8" is a part of the packet. The aggregator checks flowtables.
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
	// ruleWord matches a quoted string, a name (with @ for a set), or one other character.
	ruleWord  = regexp.MustCompile(`"[^"]*"?|[@\w.][\w./-]*|\S`)
	chainName = regexp.MustCompile(`^[A-Za-z_.]`)
)
