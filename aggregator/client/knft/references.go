package knft

import (
	"regexp"
	"strings"
)

// checkRule finds what a rule refers to and is not there: as in nft(8), it must be
// there when the rule comes.
func (c *change) checkRule(t *table, text string) error {
	refs := references(text)
	for _, name := range refs.sets {
		if t.set(name) == nil {
			if _, err := c.elsewhere(t, kindSet, name); err != nil {
				return err
			}
		}
	}
	for _, name := range refs.chains {
		if err := c.checkChain(t, name); err != nil {
			return err
		}
	}
	return nil
}

// checkChain reports a chain that neither this fragment nor another has.
func (c *change) checkChain(t *table, name string) error {
	if t.chain(name) != nil {
		return nil
	}
	_, err := c.elsewhere(t, kindChain, name)
	return err
}

// ruleReferences are the names that a rule's text mentions.
type ruleReferences struct {
	sets, chains []string
}

// references finds the names in a rule's text. It knows words and strings, not the
// grammar: the aggregator judges the text itself.
func references(text string) ruleReferences {
	var out ruleReferences
	var last, before string
	for _, at := range ruleWord.FindAllStringIndex(text, -1) {
		word := text[at[0]:at[1]]
		switch {
		case word[0] == '@':
			// "@th,16,8" is a part of the packet, and what flows are added to is a
			// flowtable, which the aggregator looks for.
			if flow := before == "flow" && (last == "add" || last == "offload"); !flow && !strings.HasPrefix(text[at[1]:], ",") {
				out.sets = append(out.sets, word[1:])
			}
		case (last == "jump" || last == "goto") && chainName.MatchString(word):
			out.chains = append(out.chains, word)
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
