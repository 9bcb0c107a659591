package knft

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/protobuf/types/known/durationpb"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/convert"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/ruleset"
)

// parseTable parses "{ comment "x" ; flags f ; }".
func parseTable(rest string) (comment string, err error) {
	if rest == "" {
		return "", nil
	}
	if i := indexOutside(rest, " flags "); i >= 0 {
		flags, _, _ := strings.Cut(rest[i+len(" flags "):], " ;")
		return "", fmt.Errorf("table flags %s: %w", clip(flags), ErrUnsupported)
	}
	t, err := parseBlock(nft.FamilyIP, rest)
	if err != nil {
		return "", err
	}
	if len(t.items) > 0 {
		return "", errors.New("more than a comment in the table")
	}
	return t.comment, nil
}

func parseBlock(family nft.Family, block string) (*table, error) {
	tables, err := ruleset.Parse("", fmt.Sprintf("table %s t %s", family, block))
	if err != nil {
		return nil, err
	}
	if len(tables) != 1 {
		return nil, errors.New("the text goes on after the table")
	}
	return readTable(nft.TableID{Family: family, Name: "t"}, convert.Table(tables[0]), nil)
}

func parseDeclaration(c *command) (item, error) {
	body := c.rest
	if body == "" && c.kind != kindSet && c.kind != kindMap {
		body = "{ }"
	}
	t, err := parseBlock(c.table.Family, fmt.Sprintf("{\n%s %s %s\n}", c.kind, c.name, body))
	if err != nil {
		return nil, err
	}
	ok := len(t.items) == 1
	it := t.items[newItemID(c.kind, c.name)]
	switch o := it.(type) {
	case nil:
		ok = false
	case *chain:
		ok = ok && len(o.rules) == 0
	case *set:
		ok = ok && len(o.elements) == 0
	}
	if !ok {
		return nil, fmt.Errorf("malformed declaration of a %s", c.kind)
	}
	return it, nil
}

type position struct {
	// from 0; -1 if unset
	index int
	// 0 if unset
	handle uint64
}

// parseRule parses "[index N | handle N] TEXT [comment "x"]".
func parseRule(rest string) (position, *weftv1.Rule, error) {
	at := position{index: -1}
	word, more, _ := strings.Cut(rest, " ")
	number, text, _ := strings.Cut(more, " ")
	switch n, err := strconv.ParseInt(number, 10, 64); {
	case word != "index" && word != "handle":
		text = rest
	case err != nil || n < 0 || n == 0 && word == "handle":
		return at, nil, fmt.Errorf("malformed %s %q", word, clip(number))
	case word == "index":
		at.index = int(n)
	default:
		at.handle = uint64(n)
	}
	text, comment := cutComment(strings.TrimSpace(text))
	return at, &weftv1.Rule{Text: text, Comment: comment}, nil
}

// Strings in nft(8) have no escapes.
func cutComment(text string) (rule, comment string) {
	const word = `comment "`
	if !strings.HasSuffix(text, `"`) {
		return text, ""
	}
	i := strings.LastIndexByte(text[:len(text)-1], '"')
	if i < 0 || !strings.HasSuffix(text[:i+1], word) {
		return text, ""
	}
	at := i + 1 - len(word)
	// The quotes before it must be in pairs, and the word must be separate.
	if strings.Count(text[:at], `"`)%2 != 0 || at > 0 && text[at-1] != ' ' {
		return text, ""
	}
	return strings.TrimSpace(text[:at]), text[i+1 : len(text)-1]
}

// parseElements parses "{ KEY [timeout T] [comment "x"] [: VALUE] [, ...] }". As in nft, a comma may follow
// the last element.
func parseElements(rest string) ([]*weftv1.Element, error) {
	body, opens := strings.CutPrefix(rest, "{")
	body, closes := strings.CutSuffix(body, "}")
	if !opens || !closes {
		return nil, fmt.Errorf("malformed element %s", clip(rest))
	}
	var out []*weftv1.Element
	for _, one := range splitOutside(strings.TrimSuffix(strings.TrimSpace(body), ","), ",") {
		e, err := parseElement(strings.TrimSpace(one))
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, nil
}

func parseElement(text string) (*weftv1.Element, error) {
	e := &weftv1.Element{}
	key := text
	if i := indexOutside(" "+text, " : "); i >= 0 {
		key, e.Value = text[:max(i-1, 0)], strings.TrimSpace(text[i+2:])
	}
	key, e.Comment = cutComment(strings.TrimSpace(key))
	if i := indexOutside(key, " timeout "); i >= 0 {
		d, err := datatype.ParseDuration(key[i+len(" timeout "):])
		if err != nil {
			return nil, fmt.Errorf("element %s: %w", clip(text), err)
		}
		key = strings.TrimSpace(key[:i])
		if d != 0 {
			e.Timeout = durationpb.New(d)
		}
	}
	for _, w := range []string{"counter", "expires"} {
		if indexOutside(key+" ", " "+w+" ") >= 0 {
			return nil, fmt.Errorf("%s of element %s: %w", w, clip(text), ErrUnsupported)
		}
	}
	if e.Key = key; key == "" {
		return nil, errors.New("no key")
	}
	return e, nil
}

// indexOutside is strings.Index outside of quotes.
func indexOutside(text, sub string) int {
	from := 0
	for {
		i := strings.Index(text[from:], sub)
		if i < 0 {
			return -1
		}
		if i += from; strings.Count(text[:i], `"`)%2 == 0 {
			return i
		}
		from = i + 1
	}
}

// splitOutside is strings.Split outside of quotes.
func splitOutside(text, sep string) []string {
	var out []string
	for i := indexOutside(text, sep); i >= 0; i = indexOutside(text, sep) {
		out, text = append(out, text[:i]), text[i+len(sep):]
	}
	return append(out, text)
}
