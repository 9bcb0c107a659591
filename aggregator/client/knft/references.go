package knft

import "strings"

// checkRule finds what a rule refers to and is not there: as in nft(8), it must be
// there when the rule comes.
func (c *change) checkRule(t *table, text string) error {
	refs := references(text)
	for _, name := range refs.sets {
		if t.sets[name] == nil {
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
	if t.chains[name] != nil {
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
	for text != "" {
		var word string
		word, text = cutWord(text)
		switch {
		case word == "":
		case word[0] == '@':
			// "@th,16,8" is a part of the packet, and what flows are added to is a
			// flowtable, which the aggregator looks for.
			if flow := before == "flow" && (last == "add" || last == "offload"); !flow && !strings.HasPrefix(text, ",") {
				out.sets = append(out.sets, word[1:])
			}
		case (last == "jump" || last == "goto") && nameStart(word[0]):
			out.chains = append(out.chains, word)
		}
		before, last = last, word
	}
	return out
}

// cutWord cuts the first word off text: a name, with an @ where it is a set's, a
// string with its quotes, or one other byte. White space is "".
func cutWord(text string) (word, rest string) {
	switch c := text[0]; {
	case c == '"':
		if i := strings.IndexByte(text[1:], '"'); i >= 0 {
			return text[:i+2], text[i+2:]
		}
		return text, ""
	case c == '@' || nameStart(c) || c >= '0' && c <= '9':
		n := 1
		for n < len(text) && nameByte(text[n]) {
			n++
		}
		return text[:n], text[n:]
	case c == ' ' || c == '\t' || c == '\n':
		trimmed := strings.TrimLeft(text, " \t\n")
		if trimmed == "" {
			return "", ""
		}
		return cutWord(trimmed)
	default:
		return text[:1], text[1:]
	}
}

func nameStart(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '.'
}

func nameByte(c byte) bool { return nameStart(c) || c >= '0' && c <= '9' || c == '-' || c == '/' }
